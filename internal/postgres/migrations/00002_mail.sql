-- +goose Up

-- Messages between nodes. They are of use only while both sides are there, so
-- they are not worth the write-ahead log.
CREATE UNLOGGED TABLE mail (
	seq  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	box  text        NOT NULL,
	data bytea       NOT NULL,
	at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX mail_box ON mail (box, seq);
