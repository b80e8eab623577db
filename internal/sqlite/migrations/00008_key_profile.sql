-- The profile that a key is bound to; empty for none.

-- +goose Up

ALTER TABLE keys ADD COLUMN profile TEXT NOT NULL DEFAULT '';
