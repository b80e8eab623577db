package executor

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// tokenValues is a TokenStore in memory.
type tokenValues struct {
	mu     sync.Mutex
	values map[string]store.Value
}

func (s *tokenValues) Value(_ context.Context, space, name string) (store.Value, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[space+"/"+name]
	if !ok {
		return v, store.ErrNotFound
	}
	return v, nil
}

func (s *tokenValues) PutValue(_ context.Context, v store.Value, ifVersion int64) (store.Value, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values[v.Space+"/"+v.Name].Version != ifVersion {
		return v, store.ErrConflict
	}
	v.Version = ifVersion + 1
	s.values[v.Space+"/"+v.Name] = v
	return v, nil
}

// TestPermitModel: using a model requires the right to, counts against the rate
// limit of calls, and is refused when the daily budget is used up, until
// midnight.
func TestPermitModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := &tokenValues{values: map[string]store.Value{}}
		r := newFixture(t, func(o *Options) { o.Tokens = tokens })
		permit := func(c tool.Caller, want tool.Kind, text string) {
			t.Helper()
			err := r.PermitModel(t.Context(), &c)
			if want == "" && err != nil || want != "" && (tool.KindOf(err) != want || !strings.Contains(err.Error(), text)) {
				t.Errorf("PermitModel(%s) = %v, want %q with %q", c.ID, err, want, text)
			}
		}
		permit(tool.Caller{ID: "none"}, tool.Denied, "--chat")
		permit(tool.Local, "", "")

		rated := tool.Caller{ID: "rated", Chat: true, Rate: tool.Rate{Calls: 2, Per: time.Hour}}
		permit(rated, "", "")
		if _, err := r.Call(t.Context(), tool.Call{Caller: rated, Server: "fs", Tool: "write"}); err != nil {
			t.Fatal(err)
		}
		permit(rated, tool.RateLimited, "2 in 1h0m0s")

		budgeted := tool.Caller{ID: "budgeted", Chat: true, TokensPerDay: 1000}
		permit(budgeted, "", "")
		var wg sync.WaitGroup
		for range 10 { // concurrently: no update is lost
			wg.Go(func() { r.UsedTokens(t.Context(), &budgeted, 100) })
		}
		wg.Wait()
		permit(budgeted, tool.RateLimited, "1000 of 1000 tokens today")
		permit(tool.Caller{ID: "other", Chat: true, TokensPerDay: 1000}, "", "")
		time.Sleep(24 * time.Hour)
		permit(budgeted, "", "")
		r.UsedTokens(t.Context(), &budgeted, 999)
		permit(budgeted, "", "")
		r.UsedTokens(t.Context(), &budgeted, 1)
		permit(budgeted, tool.RateLimited, "used up")
	})
}
