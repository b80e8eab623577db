-- +goose Up

-- Which texts a block of calls may have; filter.go says how. A block without a
-- row may have any text.
CREATE TABLE call_filters (
	seq  INTEGER PRIMARY KEY, -- of the block
	bits BLOB    NOT NULL
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER call_blocks_deleted AFTER DELETE ON call_blocks BEGIN
	DELETE FROM call_filters WHERE seq = old.seq;
END;
-- +goose StatementEnd
