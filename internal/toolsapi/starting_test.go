package toolsapi

import (
	"context"
	"strings"
	"testing"
	"time"

	"junctor/internal/listing"
)

// TestStartingServerIsWaitedFor checks that a request waits for a server that
// is starting, and lists it if it takes too long.
func TestStartingServerIsWaitedFor(t *testing.T) {
	late := web
	late.start = make(chan struct{})
	waiting := make(chan struct{}, 10)
	_, ts := gateway(t, map[string]server{"web": late}, func(_ *Options, l *listing.Options) { l.Upstreams = announced{l.Upstreams, waiting} })
	results := make(chan response, 2)
	go func() {
		results <- post(t, ts.URL+"/execute", `{"provider":"gemini","call":{"name":"web__list","args":{}}}`)
	}()
	go func() { results <- get(t, ts.URL+"/tools/openai") }()
	for range 2 {
		select {
		case <-waiting:
		case <-time.After(within):
			t.Fatal("no request waits for the server")
		}
	}
	close(late.start)
	for range 2 {
		select {
		case res := <-results:
			if res.status != 200 || !strings.Contains(string(res.body), "web__list") {
				t.Errorf("%d %s", res.status, res.body)
			}
		case <-time.After(within):
			t.Fatal("no answer")
		}
	}
}

// announced reports each wait for servers before it begins.
type announced struct {
	listing.Upstreams
	waiting chan<- struct{}
}

func (a announced) Await(ctx context.Context, servers ...string) []string {
	a.waiting <- struct{}{}
	return a.Upstreams.Await(ctx, servers...)
}

func TestPendingServersAreListed(t *testing.T) {
	never := web
	never.start = make(chan struct{})
	_, ts := gateway(t, map[string]server{"web": never}, func(_ *Options, l *listing.Options) { l.Upstreams = impatient{l.Upstreams} })
	get(t, ts.URL+"/tools").has(t, `"tools":[]`, `"pending":["web"]`)
	get(t, ts.URL+"/tools/openai?server=web").has(t, `"code":"pending"`)
	get(t, ts.URL+"/tools/openai/context", "Accept", "application/json").has(t, `"pending":["web"]`)
	get(t, ts.URL+"/health").has(t, `"status":"connecting"`)
}

// impatient reports all servers as pending without waiting.
type impatient struct{ listing.Upstreams }

func (i impatient) Await(_ context.Context, servers ...string) []string { return servers }
