-- +goose Up

ALTER TABLE calls
	ADD COLUMN request_id  text   NOT NULL DEFAULT '',
	ADD COLUMN parent      text   NOT NULL DEFAULT '',
	ADD COLUMN caller_name text   NOT NULL DEFAULT '',
	ADD COLUMN arg_bytes   bigint NOT NULL DEFAULT 0;
CREATE INDEX calls_request ON calls (request_id) WHERE request_id <> '';
CREATE INDEX calls_parent ON calls (parent) WHERE parent <> '';
-- Records come nearly in the order of time, so that a summary of pages is
-- enough to find those of the last hour, and costs next to nothing.
CREATE INDEX calls_time ON calls USING brin (time) WITH (pages_per_range = 16);
