package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

const (
	noteOne = `{"uri":"note:one"}`
	noteTwo = `{"uri":"note:two"}`
)

// TestNewConnectionGetsSubscriptionsAndLevel: clients do not notice that the
// server lost what they set.
func TestNewConnectionGetsSubscriptionsAndLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := runLedger(t, upstream.Shared)
		r.mustAs("a", "resources/subscribe", noteOne)
		r.mustAs("a", "resources/subscribe", noteTwo)
		r.mustAs("a", "resources/unsubscribe", noteTwo)
		r.mustAs("a", "logging/setLevel", `{"level":"debug"}`)
		r.mustAs("b", "logging/setLevel", `{"level":"error"}`)
		check := func(after string, want int) {
			t.Helper()
			time.Sleep(time.Minute) // it connects again
			synctest.Wait()
			for _, what := range []string{"resources/subscribe note:one", "logging/setLevel debug"} {
				if n := l.count(what); n != want {
					t.Errorf("after %s the server has seen %q %d times, want %d", after, what, n, want)
				}
			}
		}
		l.cut(false)
		check("a lost connection", 2)
		if err := r.Restart("ledger"); err != nil {
			t.Fatal(err)
		}
		check("a restart", 3)
		if n := l.count("resources/subscribe note:two"); n != 1 {
			t.Errorf("a subscription that had ended was made %d times", n)
		}
		r.mustAs("c", "logging/setLevel", `{"level":"error"}`)
		if n := l.count("logging/setLevel error"); n != 0 {
			t.Error("the level of a is forgotten")
		}
	})
}

func TestSubscriptionEndedWhileServerIsDownIsNotRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := runLedger(t, upstream.Shared)
		r.mustAs("a", "resources/subscribe", noteOne)
		r.mustAs("a", "resources/subscribe", noteTwo)
		l.cut(true)
		synctest.Wait()
		if _, err := r.as("a", "resources/unsubscribe", noteOne); err == nil {
			t.Error("a server that is down was unsubscribed from")
		}
		l.cut(false)
		time.Sleep(time.Minute) // it connects again
		synctest.Wait()
		if one, two := l.count("resources/subscribe note:one"), l.count("resources/subscribe note:two"); one != 1 || two != 2 {
			t.Errorf("the server was subscribed to %d and %d times, want 1 and 2", one, two)
		}
	})
}

// TestSessionOfCallerKeepsSubscriptions: an idle session with subscriptions is
// not closed, and one that was lost is restored.
func TestSessionOfCallerKeepsSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := runLedger(t, upstream.PerCaller, func(o *upstream.Options) {
			o.SessionIdle, o.Capabilities = time.Minute, mcpclient.Capabilities{Sampling: true}
		})
		idle := func(want int) {
			t.Helper()
			time.Sleep(time.Hour)
			if st, _ := r.StatusOf("ledger"); st.Sessions != want {
				t.Errorf("%d sessions after an idle hour, want %d", st.Sessions, want)
			}
		}
		r.mustAs("a", "resources/subscribe", noteOne)
		r.mustAs("b", "tasks/list", `{}`)
		idle(1)
		l.cut(false)
		idle(1)
		if n := l.count("resources/subscribe note:one"); n != 2 {
			t.Errorf("the server was subscribed to %d times, want once for each of 2 sessions", n)
		}
		l.cut(false)
		time.Sleep(5 * time.Second)
		r.mustAs("a", "tasks/list", `{}`)
		synctest.Wait()
		if n := l.count("resources/subscribe note:one"); n != 3 {
			t.Errorf("the server was subscribed to %d times, want once for each of 3 sessions", n)
		}
		// Another client of the caller has a separate session. The caller's
		// last unsubscription, sent by one of them, applies to both.
		ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil }
		if _, err := r.Do(t.Context(), "ledger", tool.Request{
			Method: "resources/subscribe", Params: json.RawMessage(noteOne), Caller: "a",
			Exchange: tool.Exchange{Ask: ask, Capabilities: json.RawMessage(`{"sampling":{}}`)},
		}); err != nil {
			t.Fatal(err)
		}
		idle(2)
		r.mustAs("a", "resources/unsubscribe", noteOne)
		if n := l.count("resources/unsubscribe note:one"); n != 2 {
			t.Errorf("the server was unsubscribed from %d times, want once for each session", n)
		}
		idle(0)
	})
}

// TestRenewedSessionGetsSubscriptionsAndLevel: a remote server that loses its
// sessions loses subscriptions and levels too.
func TestRenewedSessionGetsSubscriptionsAndLevel(t *testing.T) {
	l := newLedger()
	var server atomic.Pointer[mcpserver.Server]
	server.Store(l.server)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if rawjson.FieldString(body, "method") == "server/discover" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		server.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Load().Close(); ts.CloseClientConnections(); ts.Close() })
	cfg := upstream.DefaultConfig()
	cfg.Name, cfg.URL = "ledger", ts.URL
	r := newFixture(t, upstream.Options{}, cfg).run()
	r.state("ledger", upstream.Connected)
	r.mustAs("a", "resources/subscribe", noteOne)
	r.mustAs("a", "logging/setLevel", `{"level":"debug"}`)
	server.Swap(mcpserver.New(mcpserver.Options{DrainTimeout: time.Millisecond}, l)).Close()
	r.mustAs("a", "tasks/list", `{}`)
	r.eventually("the new session to have both", func() bool {
		return l.count("resources/subscribe note:one") > 1 && l.count("logging/setLevel debug") > 1
	})
}

func TestLongTaskIDsAreNotKept(t *testing.T) {
	owners := &sharedOwners{owners: map[string]string{}}
	r, l := runLedger(t, upstream.Shared, func(o *upstream.Options) { o.Tasks = owners })
	l.suffix = strings.Repeat("x", 1<<10)
	const start = `{"name":"hold","arguments":{},"task":{"ttl":60000}}`
	r.mustAs("a", "tools/call", start)
	if n := len(owners.owners); n != 0 {
		t.Errorf("the owners of %d tasks are kept", n)
	}
	if _, err := r.as("a", "tasks/get", `{"taskId":"task-1`+l.suffix+`"}`); err == nil || !strings.Contains(err.Error(), "no such task") {
		t.Errorf("the task was found: %v", err)
	}
	l.suffix = ""
	r.mustAs("a", "tools/call", start)
	if n := len(owners.owners); n != 1 {
		t.Errorf("the owners of %d tasks are kept, want 1", n)
	}
}
