// Package postgres is the store for many nodes: one PostgreSQL, given by URL,
// holds the data that they share.
//
// It promises what package store asks for, by the database's clock. A call's
// record has been committed when Append returns; numbers follow the order of
// commits over all nodes. Changes are announced with NOTIFY, outside all other
// transactions and ten times a second at most; every two seconds watchers are
// woken in case a notification was lost.
//
// While the database is unavailable every method fails soon with
// store.ErrUnavailable, most within store.timeoutMs, except that Append may be
// told to go on: see store.Config.WhenAway.
//
// # Design
//
// The call log is a table with a partition for each day (retention.go). Append
// joins the records that come together into one insert (store.Group), which
// takes their numbers from a counter row in the same statement. A batch that
// fails for a reason of the data is written record by record, so that one bad
// record does not cost the others theirs.
//
// The database is available, or in an outage (outage.go):
//
//	available ──a query fails or takes longer than timeoutMs──► outage
//	outage ──a probe is answered, the backlog is written──► available
//
// During an outage queries are not sent: they wait for its end, until it has
// lasted for timeoutMs, and then fail. With WhenAway open, Append keeps up to
// 10,000 records in the backlog and returns. An insert whose connection broke may
// have been committed, so it is repeated as insertMissing, which writes only the
// records that are not in the log.
//
// Goroutines: Run has three (listen for announcements, maintain every minute on
// the one node that holds the lease, query and wake watchers every two seconds).
// During an outage another one probes the database twice a second (probe). An
// insert runs on the goroutine of the Append that leads its group.
//
// Locks: backlog.mu comes before outage.mu, so that no record is added to a
// backlog that was just emptied; notifier.mu is taken alone. None is held during
// a query.
//
// When the process dies, what was acknowledged is in the database, but for the
// backlog of an outage, which is lost. Close tries once more to write it.
//
// Records of small tables are package sqlstore's; database.go executes its
// statements.
//
// Start reading at Store.Append, commit and try.
package postgres
