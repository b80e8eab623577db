package store

import (
	"context"
	"fmt"
	"time"
)

// Batch is a number of records on their way from one store to another.
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

// Importer takes records over as they are.
type Importer interface {
	// Import writes records with their numbers, versions and times. What is
	// there already stays, so that a copy that broke off can be repeated.
	// Messages and events need their session there or in the same batch.
	Import(ctx context.Context, b Batch) error
}

// CopyProgress says how far a copy has come.
type CopyProgress struct {
	What string // catalogues, keys, values, sessions, calls …
	Done int
}

// copyPage is how many records travel together.
const copyPage = 500

// Copy takes everything from one store to another, which should be new: its
// call log must be empty, or be the beginning of this one. Leases stay behind.
// Sealed secrets are copied as they are and need the same key. Nobody should
// write to the first store meanwhile. report, which may be nil, hears of every
// step.
func Copy(ctx context.Context, from, to Store, report func(CopyProgress)) error {
	if report == nil {
		report = func(CopyProgress) {}
	}
	if err := sameLog(ctx, from, to); err != nil {
		return err
	}
	var b Batch
	var err error
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
	return copyCalls(ctx, from, to, report)
}

// sameLog makes sure that numbers given in one log do not hide records of the
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
		return fmt.Errorf("the call log of the target has records of its own; copy into a new database: %w", ErrConflict)
	}
	return nil
}

func copySessions(ctx context.Context, from, to Store, report func(CopyProgress)) error {
	var done int
	seen := map[string]bool{}
	q := SessionQuery{Limit: copyPage}
	for {
		page, err := from.Sessions(ctx, q)
		if err != nil {
			return err
		}
		var fresh int
		for _, s := range page {
			if seen[s.ID] {
				continue
			}
			seen[s.ID] = true
			fresh++
			if err := copySession(ctx, from, to, s); err != nil {
				return err
			}
			done++
			report(CopyProgress{"sessions", done})
		}
		if len(page) < copyPage {
			return nil
		}
		if fresh == 0 { // a page of one moment: more at once
			q.Limit *= 2
			continue
		}
		// Sessions of the same moment may be on either side of the page's
		// end: look at that moment again.
		q.Before = page[len(page)-1].Updated.Add(time.Microsecond)
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

func copyCalls(ctx context.Context, from, to Store, report func(CopyProgress)) error {
	var done int
	q := CallQuery{Forward: true, Limit: copyPage}
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
