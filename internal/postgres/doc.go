// Package postgres is the store for several nodes, which share one PostgreSQL
// database given by URL.
//
// It implements the contract of package store; times are those of the database's
// clock. The record of a call is committed when Append returns, and sequence
// numbers follow the order of commits across all nodes. Changes are announced
// with NOTIFY, outside all other transactions and at most ten times a second. In
// case a notification is lost, watchers are also woken every two seconds.
//
// While the database is unavailable, every method fails with
// store.ErrUnavailable, most within store.timeoutMs. Append may be configured to
// succeed nevertheless: see store.Config.WhenAway.
//
// # Design
//
// The call log is a table with a partition for each day (retention.go). Append
// combines concurrent records into one insert (store.Group), which takes their
// numbers from a counter row in the same statement. A batch that fails because
// of its data is written record by record, so that one bad record does not
// prevent the others from being written.
//
// The database is either available or in an outage (outage.go):
//
//	available ──a query fails or takes longer than timeoutMs──► outage
//	outage ──a probe succeeds and the backlog is written──► available
//
// During an outage no queries are sent: they wait until it ends, or fail when it
// has lasted for timeoutMs. With WhenAway open, Append stores up to 10,000
// records in the backlog and returns. An insert whose connection broke may have
// been committed, so it is repeated as insertMissing, which writes only the
// records that are not in the log.
//
// Goroutines: Run has three (listen for announcements, maintain every minute on
// the one node that holds the lease, query and wake watchers every two seconds).
// During an outage another one probes the database twice a second (probe). An
// insert runs on the goroutine of the Append that leads its group.
//
// Lock order: backlog.mu before outage.mu, so that no record is added to a
// backlog that was just emptied. notifier.mu is never held together with another
// lock. No lock is held during a query.
//
// When the process dies, all acknowledged records are in the database except the
// backlog of an outage, which is lost. Close tries once more to write it.
//
// Package sqlstore implements the records of small tables; database.go executes
// its statements.
//
// Start reading at Store.Append, commit and try.
package postgres
