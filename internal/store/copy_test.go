package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
	"junctor/internal/telemetry"
)

func TestCopyOnline(t *testing.T) { storetest.CopyOnline(t, openStore(t), openStore(t)) }

// TestCopyReportsErrors checks that Copy returns the error of any step.
func TestCopyReportsErrors(t *testing.T) {
	ctx := context.Background()
	broken := errors.New("broken")
	from := openStore(t)
	if err := from.CreateSession(ctx, store.Session{ID: "x"}); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(from.AppendMessages(ctx, "x", store.Message{Seq: 1}), from.AppendEvents(ctx, "x", store.Event{Seq: 1}),
		from.Append(ctx, storetest.Call(1)))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 11 { // the number of reads of such a copy
		to := openStore(t)
		if err := store.Copy(ctx, &failing{Store: from, after: n, err: broken}, to, nil); !errors.Is(err, broken) {
			t.Errorf("a read that fails after %d others: Copy = %v", n, err)
		}
		if n >= 5 {
			continue
		}
		if err := store.Copy(ctx, from, &failing{Store: to, after: n, err: broken}, nil); !errors.Is(err, broken) {
			t.Errorf("a write that fails after %d others: Copy = %v", n, err)
		}
	}
}

// failing is a store that fails with err after a number of uses.
type failing struct {
	store.Store
	after int
	err   error
}

func (f *failing) use() error {
	if f.after--; f.after < 0 {
		return f.err
	}
	return nil
}

func (f *failing) Calls(ctx context.Context, q store.CallQuery) ([]store.Call, error) {
	if err := f.use(); err != nil {
		return nil, err
	}
	return f.Store.Calls(ctx, q)
}

func (f *failing) Catalogues(ctx context.Context) ([]store.Catalogue, error) {
	if err := f.use(); err != nil {
		return nil, err
	}
	return f.Store.Catalogues(ctx)
}

func (f *failing) Fingerprints(ctx context.Context, server string) ([]store.Fingerprint, error) {
	if err := f.use(); err != nil {
		return nil, err
	}
	return f.Store.Fingerprints(ctx, server)
}

func (f *failing) Keys(ctx context.Context) ([]store.Key, error) {
	if err := f.use(); err != nil {
		return nil, err
	}
	return f.Store.Keys(ctx)
}

func (f *failing) Values(ctx context.Context, space string) ([]store.Value, error) {
	if err := f.use(); err != nil {
		return nil, err
	}
	return f.Store.Values(ctx, space)
}

func (f *failing) Sessions(ctx context.Context, q store.SessionQuery) ([]store.Session, error) {
	if err := f.use(); err != nil {
		return nil, err
	}
	return f.Store.Sessions(ctx, q)
}

func (f *failing) Messages(ctx context.Context, session string, after int64, limit int) ([]store.Message, error) {
	if err := f.use(); err != nil {
		return nil, err
	}
	return f.Store.Messages(ctx, session, after, limit)
}

func (f *failing) Events(ctx context.Context, session string, after int64, limit int) ([]store.Event, error) {
	if err := f.use(); err != nil {
		return nil, err
	}
	return f.Store.Events(ctx, session, after, limit)
}

func (f *failing) Import(ctx context.Context, b store.Batch) error {
	if err := f.use(); err != nil {
		return err
	}
	return f.Store.Import(ctx, b)
}

func TestTailReturnsNewCalls(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := openStore(t)
	for i := range 5 {
		if err := s.Append(ctx, storetest.Call(i)); err != nil {
			t.Fatal(err)
		}
	}
	next := int64(1)
	var appended sync.WaitGroup
	for c, err := range store.Tail(ctx, s, store.CallQuery{Limit: 2}) {
		if err != nil || c.Seq != next {
			t.Fatalf("tail gave %d, %v; want %d", c.Seq, err, next)
		}
		if next++; c.Seq == 5 { // append the sixth while Tail waits
			appended.Go(func() {
				if err := s.Append(ctx, storetest.Call(6)); err != nil {
					t.Error(err)
				}
			})
		}
		if c.Seq == 6 {
			break
		}
	}
	appended.Wait()
	for range store.Tail(ctx, s, store.CallQuery{AfterSeq: 5}) {
		cancel() // ends the range
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range store.Tail(context.Background(), s, store.CallQuery{}) {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("tail of a closed store: %v", err)
		}
	}
}

func TestDefaultConfigIsValid(t *testing.T) {
	if err := store.DefaultConfig().Validate(); err != nil {
		t.Errorf("the defaults are wrong: %v", err)
	}
	r := store.DefaultConfig().Retention
	if r.Age().Hours() != 30*24 || r.Bytes() != 1<<30 {
		t.Errorf("retention: %v, %d bytes", r.Age(), r.Bytes())
	}
	for url, ok := range map[string]bool{
		"postgres://u:p@h:5432/db": true, "postgresql://h/db": true, "postgres:///db?host=/run/pg": true,
		"mysql://h/db": false, "postgres://": false, "h:5432": false, "postgres://[": false,
	} {
		if err := (store.Config{URL: telemetry.Secret(url)}).Validate(); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
	for name, c := range map[string]store.Config{
		"both":     {Path: "x", URL: "postgres://h/db"},
		"age":      {Retention: store.Retention{AgeDays: -1}},
		"size":     {Retention: store.Retention{SizeMB: -1}},
		"whenAway": {WhenAway: "ajar"},
	} {
		if err := c.Validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if fmt.Sprint(store.FailOpen.Values()) != "[closed open]" {
		t.Error("the words for whenAway are wrong")
	}
	if store.TopicSession("x") == store.TopicValues("x") {
		t.Error("topics of different things are the same")
	}
}
