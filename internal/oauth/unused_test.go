package oauth

import (
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"junctor/internal/upstream"
)

// A login that is used while unused ones are removed from memory keeps its
// state: with two states, its refresh token could be redeemed twice.
func TestLoginInUseKeepsItsState(t *testing.T) {
	s := New(Options{Log: slog.New(slog.DiscardHandler), Servers: func(string) (upstream.Config, bool) { return upstream.Config{}, false }})
	for range 500 {
		logins := make([]upstream.Login, 500)
		for i := range logins {
			logins[i] = upstream.Login{Server: "jira", Caller: strconv.Itoa(i)}
			s.state(logins[i]).asked.Store(time.Now().Add(-2 * idleLoginTTL).UnixNano())
		}
		used := make([]*state, len(logins))
		start := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { <-start; s.refreshDue(t.Context()) })
		wg.Go(func() {
			<-start
			for i, l := range logins {
				used[i] = s.state(l)
			}
		})
		close(start)
		wg.Wait()
		for i, l := range logins {
			if s.state(l) != used[i] {
				t.Fatalf("the login of caller %s has a second state", l.Caller)
			}
		}
	}
}
