-- How much of each journal of calls is in the tables already.

-- +goose Up

CREATE TABLE journals (
	name  TEXT    PRIMARY KEY,
	bytes INTEGER NOT NULL
) STRICT;
