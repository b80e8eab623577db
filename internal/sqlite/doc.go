// Package sqlite is the embedded store: one file, nothing to set up.
//
// It implements the contract of package store. When the method of a write
// returns, the write is committed to the write-ahead log, so that it survives
// kill -9; with Fsync it has reached the disk. Concurrent writes share a commit,
// and no write is delayed for others to join it. Several processes may use one
// file.
//
// # The call log
//
// A record passes through three steps (start reading at Append in calls.go):
//
//  1. Journal (journal.go, record.go). The record is appended to a file beside
//     the database that only this process writes. The record is then committed:
//     the kernel has it, and with Fsync it is on disk. Concurrent callers share
//     a write. On Linux and without Fsync, a file of 64 KB or more is mapped,
//     and writing a record is a copy in memory (journalfile.go).
//  2. Block (flush.go, block.go). After at most 100 ms, or at 512 KB, the
//     records in the journal become rows of call_blocks, up to 512 records or
//     256 KB in each. The same commit stores in the table journals how far the
//     file has been moved, so that a record is moved once, whichever process
//     does it and wherever that process dies. This is also when a record gets
//     its sequence number.
//  3. Retention (retention.go, join.go). Every minute small blocks are joined
//     with their neighbours, and blocks beyond the limits of age and size are
//     deleted. A block spans at most an hour.
//
// Every read of the call log (scan.go, stats.go, search.go) first moves the
// records in the journals, including those of other live processes, so that
// every process sees every acknowledged record; while the database cannot be
// written, the latest ones are missing. Filters and statistics read the head of
// a block. A text search reads the textFilter of a block (filter.go) and
// decompresses, on all processors, the bodies of the blocks that it does not
// exclude.
//
// A journal is a series of files, each locked for as long as its process lives.
// A file accepts records until it has 4 MiB or a write fails. When all of it is
// in blocks, it is removed or reused under another name; up to three files are
// kept for reuse. While records cannot be moved (another program locks the
// database) they are still acknowledged, up to 64 MiB. A file that is not locked
// belongs to a process that crashed: opening the store, and the sweep of every
// minute, move all of its records and remove it. A partial record at the end was
// never acknowledged; its size is logged.
//
// When a record cannot be written, Append fails and [Store.Available] returns an
// error until a record or a probe file can be written again (failure.go).
//
// Goroutines: Run owns the timer of step 2 and the sweep, and polls every half
// second for writes of other processes. Appends write on the goroutine of the
// caller that leads its group, which also moves records when more than 8 MiB
// are queued. Writes to the database run on the goroutine of the leader of the
// writer's group.
//
// Lock order: the journal's group (one append at a time), Store.flushing (one
// flush at a time; owns the block writer), the writer's group (one transaction
// at a time), journal.mu (the list of files; held during the write to the
// journal, never during a query). leaseOwners.mu and writeFailure.mu are never
// held together with another lock; they are held while a file is created.
//
// # Leases
//
// An owner of leases of a second or more has a file beside the database that
// contains the owner's name and is locked for as long as its process lives
// (leases.go). A process that finds a lease held looks for such files without a
// lock: their owners died, and their leases end immediately instead of at their
// expiry.
//
// # Other records
//
// Package sqlstore implements the records of small tables; database.go executes
// its statements.
//
// convert.go moves the calls of an older version, one row each, into blocks.
//
// The package does not interpret the records, and reads no configuration but
// store.Config.
package sqlite
