package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// awayStore rejects writes to one space of values.
type awayStore struct {
	Store
	refused atomic.Pointer[string]
}

func (s *awayStore) PutValue(ctx context.Context, v store.Value, ifVersion int64) (store.Value, error) {
	if refused := s.refused.Load(); refused != nil && *refused == v.Space {
		return store.Value{}, errors.New("the store is away")
	}
	return s.Store.PutValue(ctx, v, ifVersion)
}

func (s *awayStore) refuse(space string) { s.refused.Store(&space) }

func awayNodes(t *testing.T) (a, b *Service, s *awayStore) {
	t.Helper()
	s = &awayStore{}
	a, b = twoNodesWith(t, func(inner Store) Store {
		s.Store = inner
		return s
	})
	return a, b, s
}

var done = tool.Result{Raw: json.RawMessage(`{"content":[]}`)}

// TestEndIsWrittenWhenStoreIsBack checks that an outcome that the store
// rejected is stored later.
func TestEndIsWrittenWhenStoreIsBack(t *testing.T) {
	for name, tt := range map[string]struct {
		refused string
		failure error
		want    Status
	}{
		"result": {spaceResults, nil, Completed},
		"record": {space, nil, Completed},
		"error":  {space, &tool.Error{Kind: tool.Denied, Msg: "no"}, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, away := awayNodes(t)
			call := start(t, a, ann)
			away.refuse(tt.refused)
			if err := call.Finish(t.Context(), done, tt.failure); err == nil {
				t.Fatal("Finish without a store")
			}
			if r, err := b.Get(t.Context(), call.ID()); err != nil || r.Status != Working {
				t.Fatalf("without a store: %+v, %v", r, err)
			}
			away.refuse("")
			r := awaitStatus(t, b, call.ID(), tt.want)
			if tt.failure == nil && string(r.Result) != string(done.Raw) || tt.failure != nil && r.Error.Code != tool.Denied {
				t.Errorf("result %s, error %+v", r.Result, r.Error)
			}
		})
	}
}

// TestEndsThatWaitForStoreAreLimited checks that outcomes that wait for the
// store count against the same limits as stored ones.
func TestEndsThatWaitForStoreAreLimited(t *testing.T) {
	a, _, away := awayNodes(t)
	a.maxEnded = 1
	first, second := start(t, a, ann), start(t, a, ann)
	away.refuse(spaceResults)
	for _, call := range []*Call{first, second} {
		if err := call.Finish(t.Context(), done, nil); err == nil {
			t.Fatal("Finish without a store")
		}
	}
	away.refuse("")
	if r := awaitStatus(t, a, first.ID(), Failed); r.Error.Code != tool.Unavailable {
		t.Errorf("the older call has %+v", r.Error)
	}
	awaitStatus(t, a, second.ID(), Completed)
}

// TestEndsAreNotWrittenForever checks that an outcome is dropped if it could
// not be stored before it expired, or if the record was deleted.
func TestEndsAreNotWrittenForever(t *testing.T) {
	a, _, away := awayNodes(t)
	late, deleted := start(t, a, ann), start(t, a, ann)
	away.refuse(spaceResults)
	for _, call := range []*Call{late, deleted} {
		if err := call.Finish(t.Context(), done, nil); err == nil {
			t.Fatal("Finish without a store")
		}
	}
	a.mu.Lock()
	late.end = &callEnd{result: done, expires: time.Now()}
	a.mu.Unlock()
	a.writeEnds(t.Context())
	if err := a.store.DeleteValue(t.Context(), space, deleted.ID(), store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	away.refuse("")
	a.writeEnds(t.Context())
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.own) != 0 || a.open[ann.ID] != 0 {
		t.Errorf("%d calls are still open", len(a.own))
	}
}
