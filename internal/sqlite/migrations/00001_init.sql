-- Times are microseconds since 1970 in UTC; 0 stands for none. JSON is kept as
-- text, byte for byte as it came, so that any SQLite program can read it.

-- +goose Up

-- The sequence is the row id: one writer at a time, so numbers follow the
-- order of commits. The newest record is never deleted, so none comes twice.
-- Long columns are last: filters need not read them.
CREATE TABLE calls (
	seq          INTEGER PRIMARY KEY,
	id           TEXT    NOT NULL,
	time         INTEGER NOT NULL,
	duration     INTEGER NOT NULL,
	status       TEXT    NOT NULL,
	server       TEXT    NOT NULL,
	tool         TEXT    NOT NULL,
	method       TEXT    NOT NULL,
	face         TEXT    NOT NULL,
	caller       TEXT    NOT NULL,
	session      TEXT    NOT NULL,
	kind         TEXT    NOT NULL,
	trace_id     TEXT    NOT NULL,
	node         TEXT    NOT NULL,
	result_bytes INTEGER NOT NULL,
	stages       TEXT    NOT NULL,
	error        TEXT    NOT NULL,
	arguments    TEXT,
	result       TEXT
) STRICT;
CREATE INDEX calls_id ON calls (id);
CREATE INDEX calls_time ON calls (time);
CREATE INDEX calls_tool ON calls (server, tool);
CREATE INDEX calls_trouble ON calls (status) WHERE status <> 'ok';
CREATE INDEX calls_session ON calls (session) WHERE session <> '';

CREATE TABLE catalogues (
	server             TEXT PRIMARY KEY,
	config             TEXT NOT NULL,
	info               TEXT,
	guidance           TEXT NOT NULL,
	tools              TEXT NOT NULL,
	prompts            TEXT NOT NULL,
	resources          TEXT NOT NULL,
	resource_templates TEXT NOT NULL,
	seen               INTEGER NOT NULL
) STRICT;

CREATE TABLE fingerprints (
	server       TEXT    NOT NULL,
	tool         TEXT    NOT NULL,
	first        TEXT    NOT NULL,
	first_seen   INTEGER NOT NULL,
	current      TEXT    NOT NULL,
	current_seen INTEGER NOT NULL,
	approved     TEXT    NOT NULL,
	approved_at  INTEGER NOT NULL,
	approved_by  TEXT    NOT NULL,
	definition   TEXT,
	PRIMARY KEY (server, tool)
) STRICT;

-- NULL globs mean no limit; an empty list lets nothing through.
CREATE TABLE keys (
	id         TEXT PRIMARY KEY,
	name       TEXT    NOT NULL,
	hash       BLOB    NOT NULL UNIQUE,
	hint       TEXT    NOT NULL,
	admin      INTEGER NOT NULL,
	servers    TEXT,
	tools      TEXT,
	rate_calls INTEGER NOT NULL,
	rate_per   INTEGER NOT NULL, -- nanoseconds
	created    INTEGER NOT NULL,
	expires    INTEGER NOT NULL,
	revoked    INTEGER NOT NULL,
	last_used  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX keys_name ON keys (name) WHERE revoked = 0;

CREATE TABLE vals (
	space   TEXT    NOT NULL,
	name    TEXT    NOT NULL,
	data    BLOB    NOT NULL,
	version INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	PRIMARY KEY (space, name)
) STRICT;
CREATE INDEX vals_expires ON vals (expires) WHERE expires <> 0;

CREATE TABLE sessions (
	id       TEXT PRIMARY KEY,
	owner    TEXT    NOT NULL,
	title    TEXT    NOT NULL,
	model    TEXT    NOT NULL,
	created  INTEGER NOT NULL,
	updated  INTEGER NOT NULL,
	metadata TEXT,
	version  INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_owner ON sessions (owner, updated);
CREATE INDEX sessions_updated ON sessions (updated);

CREATE TABLE messages (
	session TEXT    NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	seq     INTEGER NOT NULL,
	time    INTEGER NOT NULL,
	role    TEXT    NOT NULL,
	content TEXT,
	native  TEXT,
	PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
	session TEXT    NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	seq     INTEGER NOT NULL,
	time    INTEGER NOT NULL,
	data    TEXT,
	PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
	name  TEXT PRIMARY KEY,
	owner TEXT    NOT NULL,
	until INTEGER NOT NULL,
	token INTEGER NOT NULL
) STRICT;

CREATE TABLE budgets (
	name TEXT PRIMARY KEY,
	left REAL    NOT NULL, -- calls that were left
	at   INTEGER NOT NULL  -- then
) STRICT;
