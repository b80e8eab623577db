package control

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"junctor/internal/listing"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// TestEvents checks that the state is sent immediately, and then each change
// that is visible to the caller.
func TestEvents(t *testing.T) {
	c := newCore(t)
	c.changed = make(chan struct{})
	chats := &waitingChats{changed: make(chan struct{})}
	face := New(Options{Chats: chats, Tools: listing.New(listing.Options{Catalog: c.catalog, Search: c.index, Upstreams: c}), Servers: c})
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		face.events(w, r.WithContext(tool.WithCaller(r.Context(), limited)))
	}))
	defer ts.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", ts.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
	if got := next(); !strings.Contains(got, `"servers":[{"name":"fs","status":"connected"}]`) || strings.Contains(got, "git") {
		t.Errorf("first event %s", got)
	}
	c.changed <- struct{}{} // no visible change for this caller: no event
	// The handler reads the status only after it has received from changed,
	// and is past the read before it receives again.
	c.changed <- struct{}{}
	c.setStatus(upstream.Status{Name: "fs", State: upstream.Disconnected, Reason: "gone"}, upstream.Status{Name: "git", State: upstream.Connected})
	c.changed <- struct{}{}
	if got := next(); !strings.Contains(got, `{"name":"fs","status":"disconnected","reason":"gone"}`) {
		t.Errorf("second event %s", got)
	}
	chats.ids.Store(&[]string{"c1"})
	chats.changed <- struct{}{}
	if got := next(); !strings.Contains(got, `"waitingChats":["c1 of l"]`) {
		t.Errorf("third event %s", got)
	}
}

// waitingChats has the waiting conversations, the same for every caller.
type waitingChats struct {
	changed chan struct{}
	ids     atomic.Pointer[[]string]
}

func (w *waitingChats) WatchWaiting(context.Context) <-chan struct{} { return w.changed }

func (w *waitingChats) Waiting(caller *tool.Caller) []string {
	out := []string{}
	if ids := w.ids.Load(); ids != nil {
		for _, id := range *ids {
			out = append(out, id+" of "+caller.ID)
		}
	}
	return out
}
