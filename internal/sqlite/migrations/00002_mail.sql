-- +goose Up

-- Messages between processes on this file. AUTOINCREMENT, because a number
-- that was taken out must not come again while someone remembers it as done.
CREATE TABLE mail (
	seq  INTEGER PRIMARY KEY AUTOINCREMENT,
	box  TEXT    NOT NULL,
	data BLOB    NOT NULL,
	at   INTEGER NOT NULL
) STRICT;
CREATE INDEX mail_box ON mail (box, seq);
