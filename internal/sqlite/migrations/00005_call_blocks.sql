-- +goose Up

-- The call log: a row is a block of records with consecutive numbers, seq to
-- seq + n - 1. block.go says what is in head, ids and body; since and until
-- are the earliest and the latest time in it. The newest block is never
-- deleted, so no number comes twice.
CREATE TABLE call_blocks (
	seq   INTEGER PRIMARY KEY,
	n     INTEGER NOT NULL,
	since INTEGER NOT NULL,
	until INTEGER NOT NULL,
	bytes INTEGER NOT NULL, -- of head, ids and body
	head  BLOB    NOT NULL,
	ids   BLOB    NOT NULL,
	body  BLOB    NOT NULL
) STRICT;
CREATE INDEX call_blocks_time ON call_blocks (until, since, n, bytes);

-- The table of before stays: a process of an older Junctor that still runs
-- writes to it, and convert.go moves what is in it into blocks.
DROP INDEX calls_id;
DROP INDEX calls_time;
DROP INDEX calls_tool;
DROP INDEX calls_trouble;
DROP INDEX calls_session;
