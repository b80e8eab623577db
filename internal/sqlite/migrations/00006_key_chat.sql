-- The right to use models, and a budget of tokens per day. NULL in chat: as the
-- limits of the key say.

-- +goose Up

ALTER TABLE keys ADD COLUMN chat INTEGER;
ALTER TABLE keys ADD COLUMN tokens_per_day INTEGER NOT NULL DEFAULT 0;
