// Package postgres is the store for many nodes: one PostgreSQL, given by URL,
// carries what they share.
//
// It promises what package store asks for, by the database's clock. A call's
// record has been committed when Append returns; numbers follow the order of
// commits over all nodes. Word of changes travels by NOTIFY, outside all other
// transactions and ten times a second at most, with a look every two seconds
// for whatever went unheard.
//
// While the database is unavailable every method fails soon with
// store.ErrUnavailable, except that Append may be told to go on: see
// store.Config.WhenAway.
package postgres
