-- JSON is kept as bytes, exactly as it came: jsonb would order its keys and
-- round its numbers, and text refuses what is not UTF-8.

-- +goose Up

-- Numbers of calls follow the order of commits: whoever takes numbers holds
-- this row until its records are committed. So a reader who has seen a number
-- has seen all before it.
CREATE TABLE call_counter (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	n   bigint NOT NULL
);
INSERT INTO call_counter (n) VALUES (0);

-- One partition a day, by the time of writing on this server's clock. A node
-- with a wrong clock does not put its records where they are soon dropped.
CREATE TABLE calls (
	seq          bigint      NOT NULL,
	logged       timestamptz NOT NULL,
	id           text        NOT NULL,
	time         timestamptz,
	duration     bigint      NOT NULL, -- microseconds
	status       text        NOT NULL,
	server       text        NOT NULL,
	tool         text        NOT NULL,
	method       text        NOT NULL,
	face         text        NOT NULL,
	caller       text        NOT NULL,
	session      text        NOT NULL,
	kind         text        NOT NULL,
	trace_id     text        NOT NULL,
	node         text        NOT NULL,
	result_bytes bigint      NOT NULL,
	stages       text        NOT NULL,
	error        text        NOT NULL,
	arguments    bytea,
	result       bytea,
	PRIMARY KEY (seq, logged)
) PARTITION BY RANGE (logged);
CREATE INDEX calls_id ON calls (id);
CREATE INDEX calls_tool ON calls (server, tool, seq);
CREATE INDEX calls_trouble ON calls (status, seq) WHERE status <> 'ok';
CREATE INDEX calls_session ON calls (session, seq) WHERE session <> '';
-- For days that have no partition (yet): a record is never refused.
CREATE TABLE calls_rest PARTITION OF calls DEFAULT;

CREATE TABLE catalogues (
	server             text PRIMARY KEY,
	config             text NOT NULL,
	info               bytea,
	guidance           text NOT NULL,
	tools              bytea NOT NULL,
	prompts            bytea NOT NULL,
	resources          bytea NOT NULL,
	resource_templates bytea NOT NULL,
	seen               timestamptz
);

CREATE TABLE fingerprints (
	server       text NOT NULL,
	tool         text NOT NULL,
	first        text NOT NULL,
	first_seen   timestamptz,
	current      text NOT NULL,
	current_seen timestamptz,
	approved     text NOT NULL,
	approved_at  timestamptz,
	approved_by  text NOT NULL,
	definition   bytea,
	PRIMARY KEY (server, tool)
);

-- NULL globs mean no limit; an empty list lets nothing through.
CREATE TABLE keys (
	id         text PRIMARY KEY,
	name       text    NOT NULL,
	hash       bytea   NOT NULL UNIQUE,
	hint       text    NOT NULL,
	admin      boolean NOT NULL,
	servers    text[],
	tools      text[],
	rate_calls bigint  NOT NULL,
	rate_per   bigint  NOT NULL, -- nanoseconds
	created    timestamptz,
	expires    timestamptz,
	revoked    timestamptz,
	last_used  timestamptz
);
CREATE UNIQUE INDEX keys_name ON keys (name) WHERE revoked IS NULL;

CREATE TABLE vals (
	space   text        NOT NULL,
	name    text        NOT NULL,
	data    bytea       NOT NULL,
	version bigint      NOT NULL,
	updated timestamptz NOT NULL,
	expires timestamptz,
	PRIMARY KEY (space, name)
);
CREATE INDEX vals_expires ON vals (expires) WHERE expires IS NOT NULL;

CREATE TABLE sessions (
	id       text PRIMARY KEY,
	owner    text   NOT NULL,
	title    text   NOT NULL,
	model    text   NOT NULL,
	created  timestamptz,
	updated  timestamptz,
	metadata bytea,
	version  bigint NOT NULL
);
CREATE INDEX sessions_owner ON sessions (owner, updated);
CREATE INDEX sessions_updated ON sessions (updated);

CREATE TABLE messages (
	session text   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	seq     bigint NOT NULL,
	time    timestamptz,
	role    text   NOT NULL,
	content bytea,
	native  bytea,
	PRIMARY KEY (session, seq)
);

CREATE TABLE events (
	session text   NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	seq     bigint NOT NULL,
	time    timestamptz,
	data    bytea,
	PRIMARY KEY (session, seq)
);

CREATE TABLE leases (
	name  text PRIMARY KEY,
	owner text        NOT NULL,
	until timestamptz NOT NULL,
	token bigint      NOT NULL
);

CREATE TABLE budgets (
	name    text PRIMARY KEY,
	left_   double precision NOT NULL, -- calls that were left
	granted bigint           NOT NULL, -- by the last taking
	at      timestamptz      NOT NULL
);
