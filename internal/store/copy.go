package store

import (
	"context"
	"fmt"
	"time"
)

// Batch is a set of records to copy from one store to another.
type Batch struct {
	Calls        []Call
	Catalogues   []Catalogue
	Fingerprints []Fingerprint
	Keys         []Key
	Values       []Value
	Sessions     []Session
	Messages     []Message
	Events       []Event
}

// Importer imports records unchanged.
type Importer interface {
	// Import writes records with their numbers, versions and times. It does
	// not overwrite existing records, so that an interrupted copy can be
	// repeated. The session of messages and events must be in the store or in
	// the same batch.
	Import(ctx context.Context, b Batch) error
}

// CopyProgress is the progress of a copy.
type CopyProgress struct {
	What string // catalogues, keys, values, sessions, calls …
	Done int
}

// clockSkew is how far the clocks of nodes may differ.
const clockSkew = time.Minute

// copyPage is the number of records in one batch.
const copyPage = 500

// Empty reports whether a store has no records. Leases, budgets and messages
// between nodes do not count: they are short-lived.
func Empty(ctx context.Context, s Store) (bool, error) {
	for _, count := range []func() (int, error){
		func() (int, error) { list, err := s.Calls(ctx, CallQuery{Limit: 1}); return len(list), err },
		func() (int, error) { list, err := s.Sessions(ctx, SessionQuery{Limit: 1}); return len(list), err },
		func() (int, error) { list, err := s.Keys(ctx); return len(list), err },
		func() (int, error) { list, err := s.Values(ctx, ""); return len(list), err },
		func() (int, error) { list, err := s.Catalogues(ctx); return len(list), err },
		func() (int, error) { list, err := s.Fingerprints(ctx, ""); return len(list), err },
	} {
		if n, err := count(); err != nil || n > 0 {
			return false, err
		}
	}
	return true, nil
}

// Copy copies all records from one store to another, which should be new: its
// call log must be empty or a prefix of the source's, or the error is
// ErrNotEmpty and nothing is copied. Leases are not copied.
// Sealed secrets are copied as they are and need the same key. The source may
// be written to meanwhile: the copy has every record that was committed before
// it began, and possibly newer ones. report, which may be nil, is called after
// every step.
func Copy(ctx context.Context, from, to Store, report func(CopyProgress)) error {
	if report == nil {
		report = func(CopyProgress) {}
	}
	if err := sameLog(ctx, from, to); err != nil {
		return err
	}
	last, err := from.LastSeq(ctx)
	if err != nil {
		return err
	}
	var b Batch
	if b.Catalogues, err = from.Catalogues(ctx); err != nil {
		return err
	}
	if b.Fingerprints, err = from.Fingerprints(ctx, ""); err != nil {
		return err
	}
	if b.Keys, err = from.Keys(ctx); err != nil {
		return err
	}
	if b.Values, err = from.Values(ctx, ""); err != nil {
		return err
	}
	if err := to.Import(ctx, b); err != nil {
		return err
	}
	report(CopyProgress{"catalogues", len(b.Catalogues)})
	report(CopyProgress{"fingerprints", len(b.Fingerprints)})
	report(CopyProgress{"keys", len(b.Keys)})
	report(CopyProgress{"values", len(b.Values)})
	if err := copySessions(ctx, from, to, report); err != nil {
		return err
	}
	return copyCalls(ctx, from, to, last, report)
}

// sameLog ensures that sequence numbers of one log do not hide records of the
// other.
func sameLog(ctx context.Context, from, to Store) error {
	there, err := to.Calls(ctx, CallQuery{Limit: 1})
	if err != nil || len(there) == 0 {
		return err
	}
	here, err := from.Calls(ctx, CallQuery{AfterSeq: there[0].Seq - 1, BeforeSeq: there[0].Seq + 1, Forward: true, Limit: 1})
	if err != nil {
		return err
	}
	if len(here) == 0 || here[0].ID != there[0].ID {
		return fmt.Errorf("%w: its call log has records of its own; nothing was copied; copy into a new database or file", ErrNotEmpty)
	}
	return nil
}

// copySessions copies all sessions. They are listed by last change, newest
// first. A session that changes before it is copied moves to the front, where
// the reader has already been, so recently changed sessions are listed again.
func copySessions(ctx context.Context, from, to Store, report func(CopyProgress)) error {
	seen := map[string]bool{}
	since := time.Time{}
	for {
		newest, err := from.Sessions(ctx, SessionQuery{Limit: 1})
		if err != nil || len(newest) == 0 {
			return err
		}
		before := len(seen)
		if err := copySessionsSince(ctx, from, to, since, seen, report); err != nil || !since.IsZero() && len(seen) == before {
			return err
		}
		since = newest[0].Updated.Add(-clockSkew)
	}
}

// copySessionsSince copies the sessions that were changed at a time or later and
// are not in seen, and adds them to it.
func copySessionsSince(ctx context.Context, from, to Store, since time.Time, seen map[string]bool, report func(CopyProgress)) error {
	q := SessionQuery{Limit: copyPage}
	for {
		page, err := from.Sessions(ctx, q)
		if err != nil {
			return err
		}
		var fresh int
		for _, s := range page {
			if s.Updated.Before(since) {
				return nil
			}
			if seen[s.ID] {
				continue
			}
			seen[s.ID] = true
			fresh++
			if err := copySession(ctx, from, to, s); err != nil {
				return err
			}
			report(CopyProgress{"sessions", len(seen)})
		}
		if len(page) < q.Rows() {
			return nil
		}
		last := page[len(page)-1].Updated
		switch oneMoment := fresh == 0 && page[0].Updated.Equal(last); {
		case oneMoment && q.Limit < MaxLimit: // try a larger page
			q.Limit *= 2
		case oneMoment:
			q.Before = last
		default:
			// Sessions with the same time may be on both sides of the end of
			// the page: read that time again.
			q.Before = last.Add(time.Microsecond)
		}
	}
}

func copySession(ctx context.Context, from, to Store, s Session) error {
	if err := to.Import(ctx, Batch{Sessions: []Session{s}}); err != nil {
		return err
	}
	for after := int64(0); ; {
		page, err := from.Messages(ctx, s.ID, after, copyPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		if err := to.Import(ctx, Batch{Messages: page}); err != nil {
			return err
		}
		after = page[len(page)-1].Seq
	}
	for after := int64(0); ; {
		page, err := from.Events(ctx, s.ID, after, copyPage)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := to.Import(ctx, Batch{Events: page}); err != nil {
			return err
		}
		after = page[len(page)-1].Seq
	}
}

// copyCalls copies the records up to last. It has a limit because new ones may
// arrive as fast as they are copied.
func copyCalls(ctx context.Context, from, to Store, last int64, report func(CopyProgress)) error {
	var done int
	q := CallQuery{Forward: true, Limit: copyPage, BeforeSeq: last + 1}
	for {
		page, err := from.Calls(ctx, q)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := to.Import(ctx, Batch{Calls: page}); err != nil {
			return err
		}
		q.AfterSeq = page[len(page)-1].Seq
		done += len(page)
		report(CopyProgress{"calls", done})
	}
}
