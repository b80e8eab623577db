package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/klauspost/compress/s2"
)

// joinBytes is the maximum compressed size of the blocks that are joined into
// one.
const joinBytes = blockBytes / 2

// joinBlocks joins neighbouring small blocks, which result from a low rate of
// calls, so that the call log has no more blocks than it needs. The last ones
// are joined when there are enough of them to fill a block.
func (s *Store) joinBlocks(ctx context.Context) error {
	for ctx.Err() == nil {
		run, more, err := s.joinable(ctx)
		if err != nil || run == nil {
			if !more || err != nil {
				return err
			}
			continue
		}
		for len(run) > 0 {
			joined := 0
			err = s.write.submit(ctx, manyStatements, func(w *writer) (err error) {
				joined, err = w.join(run)
				return err
			})
			if errors.Is(err, sql.ErrNoRows) { // another process has joined them
				return nil
			}
			if err != nil {
				return err
			}
			s.joined, run = run[0].seq, run[joined:]
		}
	}
	return ctx.Err()
}

// joinable returns the next blocks that fit into one. If there are none, it
// reports whether there are more to examine.
func (s *Store) joinable(ctx context.Context) (run []extent, more bool, err error) {
	const page = 2 * blockRecords
	rows, err := s.read.QueryContext(ctx, "SELECT seq, n, bytes, since, until FROM call_blocks WHERE seq >= ? ORDER BY seq LIMIT ?", s.joined, page)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	var looked, records int
	var bytes, since, until int64
	for rows.Next() {
		var e extent
		var size, from, to int64
		if err := rows.Scan(&e.seq, &e.n, &size, &from, &to); err != nil {
			return nil, false, err
		}
		looked++
		last := len(run) - 1
		if last >= 0 && (records+e.n > blockRecords || bytes+size > joinBytes ||
			max(until, to)-min(since, from) > blockSpan || run[last].seq+int64(run[last].n) != e.seq) {
			if last > 0 {
				return run, true, nil
			}
			run, records, bytes = run[:0], 0, 0
		}
		if len(run) == 0 {
			s.joined, since, until = e.seq, from, to
		}
		since, until = min(since, from), max(until, to)
		run, records, bytes = append(run, e), records+e.n, bytes+size
	}
	return nil, looked == page, rows.Err()
}

// join replaces the first blocks of a run by one, as many as fit into blockBytes
// uncompressed, and returns their number. It leaves a single block as it is.
func (w *writer) join(run []extent) (joined int, err error) {
	ctx := context.Background()
	var out blockWriter
	size := 0
	for _, e := range run {
		var head, ids, body []byte
		if err := w.one(ctx, "SELECT head, ids, body FROM call_blocks WHERE seq = ? AND n = ?", []any{e.seq, e.n}, &head, &ids, &body); err != nil {
			return 0, err
		}
		plain, err := s2.DecodedLen(body)
		if err != nil {
			return 0, err
		}
		if size += plain + len(ids); joined > 0 && size > blockBytes {
			break
		}
		if err := out.addBlock(head, ids, body); err != nil {
			return 0, err
		}
		joined++
	}
	if joined < 2 {
		return joined, nil
	}
	if err := w.exec(ctx, "DELETE FROM call_blocks WHERE seq BETWEEN ? AND ?", run[0].seq, run[joined-1].seq); err != nil {
		return 0, err
	}
	b := out.take()
	return joined, w.insertBlock(run[0].seq, &b)
}

// addBlock adds all records of another block.
func (w *blockWriter) addBlock(head, ids, body []byte) error {
	var h blockHead
	if err := decodeHead(head, &h, true); err != nil {
		return err
	}
	plain, err := s2.Decode(nil, body)
	if err != nil {
		return err
	}
	idReader, bodyReader := reader{b: string(ids)}, reader{b: string(plain)}
	for i, g := range h.group {
		w.add(&record{
			group: h.groups[g], session: h.names[h.sessions[i]], at: h.times[i], took: h.took[i],
			args: uint64(h.args[i]), results: uint64(h.results[i]), ids: idReader.record(), body: bodyReader.record(),
		})
	}
	if idReader.bad || bodyReader.bad {
		return errBlock
	}
	return nil
}

// record reads four texts and returns their encoded form.
func (r *reader) record() string {
	all := r.b
	r.fourTexts()
	return all[:len(all)-len(r.b)]
}
