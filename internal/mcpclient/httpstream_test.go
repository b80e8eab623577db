package mcpclient

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

func TestHTTPStreamIsResumed(t *testing.T) {
	var gets atomic.Int32
	c := web(t, Options{}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Method == http.MethodGet {
			if r.Header.Get("Last-Event-ID") != "e2" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			if gets.Add(1) == 1 {
				http.Error(w, "busy", http.StatusBadGateway)
				return
			}
			sse(w, ": again\n", "id: e3\n", event1(mcp.Message{ID: "3"}, `{"resumed":true}`))
			return
		}
		sse(w, "\xef\xbb\xbfid: e1\r\nretry: 1\r\ndata:\r\n\r\n", "event: message\nid: e2\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/progress\",\"params\":{\"progressToken\":"+string(m.ID)+",\"progress\":1}}\n\n", "data: not json\n\n", "data: {\"unfinished")
	}})
	var seen []string
	r := toolsCall
	r.Params = json.RawMessage(`{"name":"x","_meta":{"progressToken":9}}`)
	r.Exchange.Notify = func(method string, params json.RawMessage) { seen = append(seen, method+string(params)) }
	result, err := c.Do(t.Context(), r)
	if err != nil || string(result) != `{"resumed":true}` {
		t.Errorf("%s, %v", result, err)
	}
	if len(seen) != 1 || !strings.Contains(seen[0], `"progressToken":9,`) {
		t.Errorf("saw %q", seen)
	}
}

// A response that was read in part is sent again: the event before it is the
// last one that was received.
func TestHTTPStreamThatBreaksInsideTheAnswerIsResumed(t *testing.T) {
	c := web(t, Options{}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		switch {
		case r.Method == http.MethodPost:
			sse(w, "id: e1\nretry: 1\ndata:\n\n", "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":"+string(m.ID)+",\"res")
		case r.Header.Get("Last-Event-ID") == "e1":
			sse(w, "id: e2\n", event1(mcp.Message{ID: "3"}, `{"resumed":true}`))
		default: // nothing follows the response
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}})
	result, err := c.Do(t.Context(), toolsCall)
	if err != nil || string(result) != `{"resumed":true}` {
		t.Errorf("%s, %v", result, err)
	}
}

func TestHTTPStreamIsNotResumed(t *testing.T) {
	c := web(t, Options{}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if !noStream(w, r) {
			sse(w, "id: e1\nretry: 1\ndata:\n\n")
		}
	}})
	_, err := c.Do(t.Context(), toolsCall)
	if tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "does not resume") {
		t.Errorf("got %v", err)
	}
}

func TestHTTPStandaloneStream(t *testing.T) {
	received := make(chan string, 8)
	var gets atomic.Int32
	answered := make(chan mcp.Message, 1)
	s := &webServer{}
	s.handle = func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		switch {
		case r.Method == http.MethodGet && gets.Add(1) == 1:
			sse(w, "retry: 1\nid: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		case r.Method == http.MethodGet && gets.Load() == 2:
			received <- "resumed at " + r.Header.Get("Last-Event-ID")
			sse(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"ping\"}\n\n", "data: nonsense\n\n")
			<-r.Context().Done()
		case r.Method == http.MethodGet:
			<-r.Context().Done()
		case m.IsResponse():
			answered <- m
			w.WriteHeader(http.StatusAccepted)
		}
	}
	c := web(t, Options{OnNotification: func(method string, _ json.RawMessage) { received <- method }}, HTTPOptions{}, s)
	for _, want := range []string{"notifications/tools/list_changed", "resumed at 7"} {
		if got := <-received; got != want {
			t.Errorf("received %q, want %q", got, want)
		}
	}
	if m := <-answered; m.ID != `"q"` || string(m.Result) != "{}" {
		t.Errorf("ping answered with %+v", m)
	}
	c.Close()
}

func TestHTTPStandaloneStreamRenewsTheSession(t *testing.T) {
	renewed := make(chan struct{})
	s := &webServer{}
	s.handle = func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Header.Get("Mcp-Session-Id") != "s1" {
			<-r.Context().Done()
			return
		}
		if r.Header.Get("Last-Event-ID") == "" {
			sse(w, "id: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}
	web(t, Options{OnSessionReplaced: func() { close(renewed) }}, HTTPOptions{}, s)
	<-renewed
}

// Some servers accept the request and respond on the GET stream.
func TestHTTPResponseOnOtherStream(t *testing.T) {
	posted := make(chan mcp.Message, 1)
	c := web(t, Options{}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Method == http.MethodGet {
			sse(w, ": open\n\n")
			sse(w, event1(<-posted, `{"late":true}`))
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusAccepted)
		posted <- m
	}})
	result, err := c.Do(t.Context(), toolsCall)
	if err != nil || string(result) != `{"late":true}` {
		t.Errorf("%s, %v", result, err)
	}
}

// TestHTTPResponseOnLateStream: the GET stream with the response opens after
// the request was accepted.
func TestHTTPResponseOnLateStream(t *testing.T) {
	t.Parallel() // connecting waits for the stream
	posted := make(chan mcp.Message, 1)
	c := web(t, Options{}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Method == http.MethodGet {
			sse(w, event1(<-posted, `{"late":true}`)) // no headers before the first event
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_ = http.NewResponseController(w).Flush()
		time.AfterFunc(100*time.Millisecond, func() { posted <- m })
	}})
	result, err := c.Do(t.Context(), toolsCall)
	if err != nil || string(result) != `{"late":true}` {
		t.Errorf("%s, %v", result, err)
	}
}

// A server may respond on the GET stream and close the stream of the request.
func TestHTTPResponseOnBothStreams(t *testing.T) {
	posted, sent := make(chan mcp.Message, 1), make(chan struct{})
	c := web(t, Options{OnNotification: func(method string, _ json.RawMessage) { close(sent) }}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Method == http.MethodGet {
			sse(w, ": open\n\n")
			sse(w, event1(<-posted, `{"other":true}`), "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")
			<-r.Context().Done()
			return
		}
		posted <- m
		<-sent
		sse(w, ": nothing here\n\n")
	}})
	result, err := c.Do(t.Context(), toolsCall)
	if err != nil || string(result) != `{"other":true}` {
		t.Errorf("%s, %v", result, err)
	}
}
