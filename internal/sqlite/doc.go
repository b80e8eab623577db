// Package sqlite is the embedded store: one file, nothing to set up.
//
// It promises what package store asks for. A write has been committed to the
// write-ahead log when its method returns, so that it survives kill -9; with
// Fsync it has reached the disk. Concurrent writes share a commit, and no write
// is delayed for others to join it. Several processes may use one file.
//
// # The call log
//
// A record takes three steps (Append in calls.go is where to begin reading):
//
//  1. Journal (journal.go, record.go). The record is appended to a file of this
//     process's own beside the database. It is committed then: the kernel has
//     it, and with Fsync the disk. Concurrent callers share a write. On Linux and without Fsync, a file of 64 KB or more is mapped, and
//     a record is a copy (journalfile.go).
//  2. Block (flush.go, block.go). Within 100 ms, or at 512 KB, the records that
//     wait become rows of call_blocks, up to 512 records or 256 KB in each. The
//     same commit notes in the table journals how far the file has been moved,
//     so that a record is moved once, whoever does it and wherever they die.
//     This is also when a record gets its number.
//  3. Retention (retention.go, join.go). Every minute small blocks are joined
//     with their neighbours, and blocks beyond the limits of age and size are
//     deleted. A block spans an hour at most.
//
// Whoever reads the call log (scan.go, stats.go, search.go) first moves what
// is in the journals, those of other living processes included, so that every
// process reads every acknowledged record; while the database cannot be written,
// the latest ones are missing. Filters and statistics read the
// head of a block. A search for a text reads the textFilter of a block
// (filter.go) and decompresses, on all processors, the bodies of those blocks
// that may have it.
//
// A journal is a series of files, each held with a lock for as long as its
// process lives. A file takes records until it has 4 MiB or a write failed,
// and is removed, or used again under another name, when all of it is in
// blocks; up to three are kept for that. While records cannot be moved (another
// program holds the database) they are still acknowledged, up to 64 MiB. A file
// without its lock belongs to a process that crashed: opening the store, and the
// sweep of every minute, move all of it and remove it. A partial record at the end
// was never acknowledged; its size is logged.
//
// When a record cannot be written, Append fails and [Store.Available] says so
// until a record or a probe file can be written again (failure.go).
//
// Goroutines: Run owns the timer of step 2 and the sweep, and looks every half
// second for what other processes wrote. Appends write on the goroutine of the
// caller that leads its group, which also moves records when more than 8 MiB
// wait. Writes to the database run on that of the leader of the writer's group.
//
// Locks, in this order: the journal's group (one append at a time),
// Store.flushing (one flush at a time; owns the block writer), the writer's group
// (one transaction at a time), journal.mu (the list of files; held over the write
// to the journal, never over a query). leaseOwners.mu and writeFailure.mu are
// taken alone, also while a file is made.
//
// # Leases
//
// An owner of leases of a second or more has a file beside the database, with
// its name in it and locked for as long as its process lives (leases.go).
// Whoever finds a lease taken looks for files without their lock: their owners
// died, and their leases end at once, not by their time.
//
// # Other records
//
// Records of small tables are package sqlstore's; database.go executes its
// statements.
//
// convert.go moves the calls of an older version, one row each, into blocks.
//
// The package knows nothing of what the records mean, and reads no
// configuration but store.Config.
package sqlite
