package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"junctor/internal/store"
)

var recordBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Append implements store.CallLog. The record is committed when it is in the
// journal.
func (s *Store) Append(ctx context.Context, c store.Call) error {
	buf := recordBuffers.Get().(*[]byte)
	*buf = encodeRecord(*buf, &c)
	err := s.journal.append(ctx, *buf)
	if cap(*buf) <= maxKeptBuffer {
		recordBuffers.Put(buf)
	}
	s.failure.note(err)
	if err != nil {
		if s.serveOn {
			s.lost.Add(1)
		}
		return s.explain("record the call", err)
	}
	s.Wake(store.TopicCalls)
	return nil
}

// Lost implements store.CallLog.
func (s *Store) Lost() int64 { return s.lost.Load() }

// Calls implements store.CallLog.
func (s *Store) Calls(ctx context.Context, q store.CallQuery) ([]store.Call, error) {
	out := []store.Call{}
	want := q.Rows()
	err := s.scan(ctx, q, false, func(b *blockReader) error {
		found, err := b.matching(q)
		if err != nil {
			return err
		}
		if !q.Oldest() {
			slices.Reverse(found)
		}
		for _, i := range found {
			c, err := b.call(i, q.Brief)
			if err != nil {
				return err
			}
			if out = append(out, c); len(out) == want {
				return errStopScan
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.explain("read the call log", err)
	}
	if !q.Oldest() {
		slices.Reverse(out)
	}
	return out, nil
}

// Call implements store.CallLog.
func (s *Store) Call(ctx context.Context, id string) (out store.Call, err error) {
	if id == "" {
		return out, s.explain("read a call", store.ErrNotFound)
	}
	err = s.scan(ctx, store.CallQuery{}, false, func(b *blockReader) error {
		raw, err := b.rawIDs()
		if err != nil || !strings.Contains(raw, id) {
			return err
		}
		ids, err := b.ids()
		if err != nil {
			return err
		}
		for i, c := range slices.Backward(ids) {
			own, given := c[0] == id, c[1] == id && out.Seq == 0
			if !own && !given {
				continue
			}
			if out, err = b.call(i, false); err != nil || own {
				return cmp.Or(err, errStopScan)
			}
		}
		return nil
	})
	if err == nil && out.Seq == 0 {
		err = store.ErrNotFound
	}
	return out, s.explain("read call "+id, err)
}

// LastSeq implements store.CallLog.
func (s *Store) LastSeq(ctx context.Context) (n int64, err error) {
	s.flushAll(ctx)
	err = s.read.QueryRowContext(ctx, nextSeq).Scan(&n)
	return n - 1, s.explain("read the call log", err)
}
