package mcpclient

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// webServer is a scripted HTTP server. It answers handshakes of the handshake
// era with numbered sessions; the test handles the rest.
type webServer struct {
	t         *testing.T
	handle    func(w http.ResponseWriter, r *http.Request, m mcp.Message)
	sessions  atomic.Int32
	deleted   chan string
	stateless bool
	hang      bool                                   // leave server/discover unanswered
	refuse    func(http.ResponseWriter, mcp.Message) // answers initialize when set
}

func (s *webServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m mcp.Message
	switch r.Method {
	case http.MethodDelete:
		s.deleted <- r.Header.Get("Mcp-Session-Id")
		return
	case http.MethodPost:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if m, err = mcp.Decode(body, mcp.Limits{}); err != nil {
			s.t.Errorf("the client sent %s: %v", body, err)
		}
	}
	switch {
	case m.Method == "server/discover" && s.stateless:
		plain(w, m, discoverResult)
	case m.Method == "server/discover" && s.hang:
		<-r.Context().Done()
	case m.Method == "initialize" && s.refuse != nil:
		s.refuse(w, m)
	case m.Method == "server/discover":
		http.Error(w, "what?", http.StatusBadRequest)
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", s.sessions.Add(1)))
		plain(w, m, initResult)
	case m.Method == "notifications/initialized":
		w.WriteHeader(http.StatusAccepted)
	default:
		s.handle(w, r, m)
	}
}

func plain(w http.ResponseWriter, m mcp.Message, result string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func sse(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		fmt.Fprint(w, e)
	}
	w.(http.Flusher).Flush()
}

func event1(m mcp.Message, result string) string {
	return fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, result)
}

// web starts a server and connects to it.
func web(t *testing.T, o Options, h HTTPOptions, s *webServer) *Client {
	t.Helper()
	s.t, s.deleted = t, make(chan string, 8)
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	h.URL = ts.URL + "/mcp?key=secret"
	if o.DiscoverTimeout == 0 {
		o.DiscoverTimeout = time.Hour // do not mistake a busy machine for a silent server
	}
	c, err := Connect(t.Context(), NewHTTP(h), o)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

var toolsCall = tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x"}`)}

// noStream refuses the GET stream.
func noStream(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return true
	}
	return false
}
