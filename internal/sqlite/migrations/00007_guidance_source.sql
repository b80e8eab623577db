-- Where guidance came from. What is not known to be generated counts as a
-- prompt's, which fewer callers may see.

-- +goose Up

ALTER TABLE catalogues ADD COLUMN guidance_source TEXT NOT NULL DEFAULT '';
UPDATE catalogues SET guidance_source = CASE WHEN guidance LIKE 'Tools of %' THEN 'generated' ELSE 'prompt' END;
