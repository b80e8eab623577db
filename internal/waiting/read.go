package waiting

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// errOwnerEnded is the failure of a call whose process has died.
var errOwnerEnded = &tool.Error{Kind: tool.Unavailable, Msg: "the process of the gateway that executed this call has ended, and its result is not known; call the tool again if that is safe"}

// Get returns a record, with the result of a completed call. If the owner of
// the record has died, Get takes the call over or marks it as failed. It does
// not check permissions; see [Readable].
func (s *Service) Get(ctx context.Context, id string) (Record, error) {
	r, err := s.read(ctx, id)
	if err != nil {
		return r, err
	}
	switch {
	case r.Status.Final() || s.alive(ctx, r.Owner):
	case s.resume != nil && r.Task.ID != "":
		if r, err = s.takeOver(ctx, r); err != nil {
			return r, err
		}
	default:
		r, err = s.update(ctx, id, func(r *Record) error {
			if r.Status.Final() {
				return errUnchanged
			}
			r.Inputs, r.Expires = nil, time.Now().Add(r.TTL).UTC()
			r.fail(errOwnerEnded)
			return nil
		})
		if err != nil {
			return r, err
		}
	}
	if r.Status != Completed {
		return r, nil
	}
	v, err := s.store.Value(ctx, spaceResults, id)
	if errors.Is(err, store.ErrNotFound) {
		return Record{}, ErrNotFound
	}
	r.Result = json.RawMessage(v.Data)
	return r, err
}

// alive reports whether the owner of a record still executes its calls. While
// the store is unavailable every owner counts as alive.
func (s *Service) alive(ctx context.Context, owner string) bool {
	if owner == s.owner {
		return true
	}
	dead, err := store.Expired(ctx, s.store, leaseOf(owner), s.owner)
	return err != nil || !dead
}

// Readable reports whether the caller may read a record: its own ones, and for
// an administrator those that wait for approval.
func Readable(c *tool.Caller, r *Record) bool {
	return r.MadeBy(c) || c.Admin && slices.ContainsFunc(r.Inputs, func(in Input) bool { return in.Kind == KindApproval })
}

// List returns the records that match, without results, oldest first.
func (s *Service) List(ctx context.Context, match func(*Record) bool) ([]Record, error) {
	values, err := s.store.Values(ctx, space)
	if err != nil {
		return nil, err
	}
	out, alive := []Record{}, map[string]bool{}
	for _, v := range values {
		r, err := decode(v)
		if err != nil || !match(&r) {
			continue
		}
		if !r.Status.Final() {
			up, known := alive[r.Owner]
			if !known {
				up = s.alive(ctx, r.Owner)
				alive[r.Owner] = up
			}
			if !up && (s.resume == nil || r.Task.ID == "") {
				r.Inputs = nil
				r.fail(errOwnerEnded)
				if !match(&r) {
					continue
				}
			}
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Record) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// Watch returns a channel that receives after changes of any record. It may
// also receive without a change.
func (s *Service) Watch(ctx context.Context) <-chan struct{} {
	return s.store.Watch(ctx, store.TopicValues(space))
}

// Await waits until the version of the record differs from version or its
// status is final, and returns the record. If ctx ends first, it returns the
// record as it is.
func (s *Service) Await(ctx context.Context, id string, version int64) (Record, error) {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := s.Watch(watch)
	for {
		r, err := s.Get(context.WithoutCancel(ctx), id)
		if err != nil || r.Version != version || r.Status.Final() {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, nil
		case <-changed:
		}
	}
}

// Follow calls changed with each record, and again after each change, until all
// calls have ended or ctx is done. Records that do not exist are skipped.
func (s *Service) Follow(ctx context.Context, ids []string, changed func(*Record)) {
	watch := s.Watch(ctx)
	versions := map[string]int64{}
	for ids = slices.Clone(ids); ; {
		ids = slices.DeleteFunc(ids, func(id string) bool {
			r, err := s.Get(ctx, id)
			if err != nil {
				return errors.Is(err, ErrNotFound)
			}
			if last, known := versions[id]; !known || last != r.Version {
				versions[id] = r.Version
				changed(&r)
			}
			return r.Status.Final()
		})
		if len(ids) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-watch:
		}
	}
}

// Answer stores the answer to an input of a call for the owner of the record.
// permit is called with the record and the input, and may refuse by returning
// an error. Only the first answer is accepted; later ones get ErrAnswered.
func (s *Service) Answer(ctx context.Context, id, input string, by tool.Caller, answer json.RawMessage, permit func(*Record, *Input) error) (Record, error) {
	if len(answer) == 0 || len(answer) > maxAnswer {
		return Record{}, &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the answer has %d bytes; 1 to %d are allowed", len(answer), maxAnswer)}
	}
	r, err := s.update(ctx, id, func(r *Record) error {
		in := r.Input(input)
		if in == nil {
			return ErrAnswered
		}
		if err := permit(r, in); err != nil {
			return err
		}
		if in.Answer != nil || !in.Expires.IsZero() && time.Now().After(in.Expires) || !s.alive(ctx, r.Owner) {
			return ErrAnswered
		}
		in.Answer, in.By, in.ByName = answer, by.ID, by.Name
		return nil
	})
	if err == nil {
		s.notify(ctx, id)
	}
	return r, err
}

// Cancel cancels a call that has not ended. permit is called with the record and
// may refuse.
func (s *Service) Cancel(ctx context.Context, id string, permit func(*Record) error) (Record, error) {
	r, err := s.update(ctx, id, func(r *Record) error {
		if err := permit(r); err != nil {
			return err
		}
		if r.Status.Final() {
			return ErrAnswered
		}
		r.Status, r.Message, r.Inputs, r.Expires = Cancelled, "cancelled", nil, time.Now().Add(r.TTL).UTC()
		return nil
	})
	if err == nil {
		s.notify(ctx, id)
	}
	return r, err
}

// notify makes the owner of a record poll it.
func (s *Service) notify(ctx context.Context, id string) {
	s.mu.Lock()
	c := s.own[id]
	s.mu.Unlock()
	if c != nil {
		c.poll(context.WithoutCancel(ctx))
		return
	}
	s.store.Announce(topicAnswers)
}
