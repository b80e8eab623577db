// Package postgres is the store for many nodes: one PostgreSQL, given by URL,
// carries what they share.
//
// It promises what package store asks for, by the database's clock. A call's
// record has been committed when Append returns; numbers follow the order of
// commits over all nodes. Changes are announced with NOTIFY, outside all other
// transactions and ten times a second at most; every two seconds watchers are
// woken in case a notification was lost.
//
// While the database is unavailable every method fails soon with
// store.ErrUnavailable, except that Append may be told to go on: see
// store.Config.WhenAway.
//
// Records of small tables are package sqlstore's; database.go executes its
// statements.
package postgres
