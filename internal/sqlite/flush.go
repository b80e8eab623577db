package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"junctor/internal/filelock"
)

const (
	insertBlock   = "INSERT INTO call_blocks (seq, n, since, until, bytes, head, ids, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
	insertFilter  = "INSERT INTO call_filters (seq, bits) VALUES (?, ?)"
	upsertJournal = "INSERT INTO journals (name, bytes) VALUES (?, ?) ON CONFLICT DO UPDATE SET bytes = excluded.bytes WHERE bytes = ?"
	nextSeq       = "SELECT coalesce((SELECT seq + n FROM call_blocks ORDER BY seq DESC LIMIT 1), 1)"
)

// errMoved means that another process moved the records first.
var errMoved = errors.New("the records were moved by another process")

// flushOwn moves the records of this process's journal into blocks.
func (s *Store) flushOwn() error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	err := s.flushFiles()
	s.journal.flushed(err)
	return err
}

func (s *Store) flushFiles() error {
	for {
		f, end, err := s.journal.next()
		if err != nil {
			s.log.Warn("a journal whose records are in the database could not be removed; the next sweep tries again", "err", err)
		}
		if f == nil {
			return nil
		}
		done, err := s.moveRecords(f.File, f.name(), f.done, end)
		if err != nil {
			return err
		}
		if done == f.done {
			return fmt.Errorf("journal %s: the record at byte %d cannot be read back", f.name(), done)
		}
		s.journal.moved(f, done)
	}
}

// moveRecords moves records of a journal between the offsets from and end into
// blocks. It returns the offset up to which records are in blocks, which is from
// when no whole record follows. It may stop before end. Any process may do it:
// the offset is stored in the same commit.
func (s *Store) moveRecords(f *os.File, name string, from, end int64) (done int64, err error) {
	chunk, err := readRecords(s.chunk, f, from, end)
	if err != nil {
		return from, err
	}
	if cap(chunk) <= maxKeptBuffer {
		s.chunk = chunk
	}
	var blocks []block
	to := from
	w := &s.blocks
	w.reset()
	for j := range records(chunk, saltOf(name)) {
		to += j.size
		if j.err != nil { // skip it, so that it does not block the records after it
			s.log.Error("skipping the unreadable record of a call", "journal", name, "bytes", j.size, "err", j.err)
			continue
		}
		if w.full(j.at) {
			blocks = append(blocks, w.take())
		}
		w.add(&j.record)
	}
	if w.n > 0 {
		blocks = append(blocks, w.take())
	}
	if to == from {
		return from, nil
	}
	err = s.write.submit(context.Background(), manyStatements, func(w *writer) error {
		// The row in journals exists as long as the file does.
		if _, err := os.Stat(f.Name()); err != nil {
			return errMoved
		}
		if n, err := w.affect(context.Background(), upsertJournal, name, to, from); err != nil || n == 0 {
			return errors.Join(err, errMoved)
		}
		return w.appendBlocks(blocks)
	})
	if !errors.Is(err, errMoved) {
		return to, err
	}
	if _, err := os.Stat(f.Name()); err != nil {
		return end, nil // its owner removed the file: all of it is in blocks
	}
	if done, err = s.flushedBytes(name); err == nil && done <= from {
		err = errMoved
	}
	return done, err
}

// appendBlocks adds blocks to the end of the call log and numbers their records.
func (w *writer) appendBlocks(blocks []block) error {
	ctx := context.Background()
	var seq int64
	if err := w.one(ctx, nextSeq, nil, &seq); err != nil {
		return err
	}
	for _, b := range blocks {
		if err := w.insertBlock(seq, &b); err != nil {
			return err
		}
		seq += int64(b.n)
	}
	return nil
}

func (w *writer) insertBlock(seq int64, b *block) error {
	size := len(b.head) + len(b.ids) + len(b.body) + len(b.filter)
	err := w.exec(context.Background(), insertBlock, seq, int64(b.n), b.since, b.until, int64(size), b.head, b.ids, b.body)
	if err == nil && b.filter != nil {
		err = w.exec(context.Background(), insertFilter, seq, b.filter)
	}
	return err
}

// readRecords reads a part of a journal, into buf if it is large enough. The
// part contains at least one whole record if there is one. A mapped file has
// zeros after its last record.
func readRecords(buf []byte, f io.ReaderAt, from, end int64) ([]byte, error) {
	var head [recordHead]byte
	if got, err := f.ReadAt(head[:], from); err != nil && err != io.EOF || recordSize(head[:got]) <= recordHead {
		return nil, ignoreEnd(err)
	}
	n := max(0, min(flushBytes, end-from))
	chunk := slices.Grow(buf[:0], int(n))[:n]
	got, err := f.ReadAt(chunk, from)
	if err != nil && err != io.EOF {
		return nil, err
	}
	chunk = chunk[:got]
	if size := recordSize(chunk); size > int64(got) && size <= end-from {
		chunk = make([]byte, size)
		if _, err := f.ReadAt(chunk, from); err != nil && err != io.EOF {
			return nil, err
		}
	}
	return chunk, nil
}

// flushAll moves the journals of all processes into blocks before the call log
// is read. A failure is only logged at debug level: Run retries and reports it.
func (s *Store) flushAll(ctx context.Context) {
	if err := errors.Join(s.flushOwn(), s.flushOthers(ctx)); err != nil {
		s.log.DebugContext(ctx, "reading the call log without the latest records", "err", err)
	}
}

// flushOthers moves the records in the journals of other processes.
func (s *Store) flushOthers(ctx context.Context) error { return s.eachOtherJournal(ctx, s.flushOther) }

// eachOtherJournal calls f with the name of every journal of other processes
// until f returns an error.
func (s *Store) eachOtherJournal(ctx context.Context, f func(context.Context, string) error) error {
	names, err := journals(s.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if s.journal.owns(name) {
			continue
		}
		if err := f(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) flushOther(ctx context.Context, name string) error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	path := filepath.Join(filepath.Dir(s.path), name)
	if info, err := os.Stat(path); err != nil || info.Size() == s.others[name] {
		return ignoreAbsent(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return ignoreAbsent(err)
	}
	defer f.Close()
	done, _, err := s.moveAll(ctx, f, name)
	if err == nil {
		if len(s.others) > 1000 { // most of the files no longer exist
			clear(s.others)
		}
		s.others[name] = done
	}
	return err
}

// moveAll moves all whole records of a journal of another process. It returns
// how many bytes of it are in blocks and its size.
func (s *Store) moveAll(ctx context.Context, f *os.File, name string) (done, size int64, err error) {
	if done, err = s.flushedBytes(name); err != nil {
		return 0, 0, err
	}
	for ctx.Err() == nil {
		info, err := f.Stat()
		if err != nil {
			return done, 0, err
		}
		to, err := s.moveRecords(f, name, done, info.Size())
		if err != nil || to == done {
			return done, info.Size(), err
		}
		done = to
	}
	return done, 0, ctx.Err()
}

// flushedBytes returns how many bytes of a journal are in blocks.
func (s *Store) flushedBytes(name string) (done int64, err error) {
	err = s.read.QueryRow("SELECT bytes FROM journals WHERE name = ?", name).Scan(&done)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return done, err
}

// recoverJournals moves the records of dead processes into blocks and removes
// their journals. Locked journals belong to live processes and are skipped.
func (s *Store) recoverJournals(ctx context.Context) error {
	if err := s.eachOtherJournal(ctx, s.recoverJournal); err != nil {
		return err
	}
	return s.forgetJournals(ctx)
}

func (s *Store) recoverJournal(ctx context.Context, name string) error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(s.path), name), os.O_RDWR, 0)
	if err != nil {
		return ignoreAbsent(err) // removed by its owner
	}
	defer f.Close()
	if err := filelock.Hold(f); err != nil {
		if errors.Is(err, filelock.ErrHeld) {
			return nil
		}
		return err
	}
	if !sameFile(f) {
		return nil
	}
	s.flushing.Lock()
	defer s.flushing.Unlock()
	done, size, err := s.moveAll(ctx, f, name)
	if err != nil {
		return err
	}
	torn, err := writtenLen(f, done, size)
	if err != nil {
		return err
	}
	if torn > 0 {
		s.log.WarnContext(ctx, "the journal of an ended process stops in the middle of a record, which was not acknowledged and is skipped",
			"journal", name, "recovered_bytes", done, "torn_bytes", torn)
	}
	return errors.Join(f.Close(), ignoreAbsent(os.Remove(f.Name())))
}

// writtenLen returns the number of bytes between from and the last byte before
// end that is not zero.
func writtenLen(f io.ReaderAt, from, end int64) (n int64, err error) {
	b := make([]byte, min(flushBytes, max(0, end-from)))
	for at := from; at < end; {
		got, err := f.ReadAt(b[:min(int64(len(b)), end-at)], at)
		if kept := len(bytes.TrimRight(b[:got], "\x00")); kept > 0 {
			n = at + int64(kept) - from
		}
		if err != nil || got == 0 {
			return n, ignoreEnd(err)
		}
		at += int64(got)
	}
	return n, nil
}

func ignoreEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// forgetJournals deletes the rows of journals whose files no longer exist.
func (s *Store) forgetJournals(ctx context.Context) error {
	noted, err := s.journalNames(ctx)
	if err != nil {
		return err
	}
	there, err := journals(s.path) // after the rows: a file is created before its row
	if err != nil {
		return err
	}
	for _, name := range noted {
		if slices.Contains(there, name) {
			continue
		}
		if _, err := s.deleteRows(ctx, "DELETE FROM journals WHERE name = ?", name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) journalNames(ctx context.Context) (names []string, err error) {
	rows, err := s.read.QueryContext(ctx, "SELECT name FROM journals")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
