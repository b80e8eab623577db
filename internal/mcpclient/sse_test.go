package mcpclient

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// If a server of the legacy transport refuses a message, only that message
// fails; other calls continue. Only the loss of the session ends the
// connection.
func TestLegacySSERefusalConcernsOneMessage(t *testing.T) {
	events, slow := make(chan string, 8), make(chan mcp.Message, 1)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			sse(w, "event: endpoint\ndata: /post\n\n")
			for {
				select {
				case e := <-events:
					sse(w, e)
				case <-r.Context().Done():
					return
				}
			}
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m, err := mcp.Decode(body, mcp.Limits{})
		if err != nil {
			t.Errorf("the client sent %s: %v", body, err)
		}
		status := http.StatusAccepted
		switch name := rawjson.FieldString(m.Params, "name"); {
		case m.Method == "initialize":
			events <- event1(m, initResult)
		case name == "slow":
			slow <- m
		case name == "big":
			status = http.StatusRequestEntityTooLarge
		case name == "gone":
			status = http.StatusNotFound
		case m.IsRequest():
			events <- event1(m, `{"quick":1}`)
		case m.Method != "notifications/initialized":
			status = http.StatusTooManyRequests
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	c, err := Connect(t.Context(), NewSSE(HTTPOptions{URL: ts.URL}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	call := func(name string) (json.RawMessage, error) {
		return c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"` + name + `"}`)})
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		if result, err := call("slow"); err != nil || string(result) != `{"slow":1}` {
			t.Errorf("the call beside refused messages: %s, %v", result, err)
		}
	}()
	pending := <-slow
	if _, err := call("big"); tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "HTTP 413") {
		t.Errorf("the refused call: %v", err)
	}
	if err := c.Notify(t.Context(), "notifications/x", nil); err != nil {
		t.Errorf("the refused notification: %v", err)
	}
	if result, err := call("quick"); err != nil || string(result) != `{"quick":1}` {
		t.Errorf("a call after refused messages: %s, %v", result, err)
	}
	events <- event1(pending, `{"slow":1}`)
	<-over
	if _, err := call("gone"); tool.KindOf(err) != tool.UpstreamFailed {
		t.Errorf("a call on a lost session: %v", err)
	}
	<-c.Done()
}

func TestLegacySSERefused(t *testing.T) {
	for name, tt := range map[string]struct{ stream, want string }{
		"another origin": {"event: endpoint\ndata: http://elsewhere.example/post\n\n", "another origin"},
		"no endpoint":    {"data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n", "endpoint event"},
		"ends":           {"", "endpoint event"},
	} {
		t.Run(name, func(t *testing.T) {
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { sse(w, tt.stream) }))
			defer ts.Close()
			if _, err := Connect(t.Context(), NewSSE(HTTPOptions{URL: ts.URL}), Options{}); tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLegacySSEPostRefused(t *testing.T) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		sse(w, "event: endpoint\ndata: /post\n\nevent: other\ndata: x\n\n")
		<-r.Context().Done()
	}))
	defer ts.Close()
	if _, err := Connect(t.Context(), NewSSE(HTTPOptions{URL: ts.URL}), Options{}); tool.KindOf(err) != tool.UpstreamAuthRequired {
		t.Errorf("got %v", err)
	}
}
