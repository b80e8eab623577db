package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
)

func TestStandaloneStream(t *testing.T) {
	s := newSite(t, Options{}, &scripted{})
	h := s.open(mcp.Version20250618, `{}`)
	// There is no reader yet: notifications are kept, equal ones only once.
	for range 3 {
		s.Notify("notifications/tools/list_changed", nil)
	}
	e := readEvents(t, s.send(ctxFor(t), "GET", "", h...))
	if m := e.want(); m.Method != "notifications/tools/list_changed" {
		t.Fatalf("got %+v", m)
	}
	first := e.id
	s.Notify("notifications/one", json.RawMessage(`{"n":1}`))
	if m := e.want(); m.Method != "notifications/one" {
		t.Fatalf("got %+v", m)
	}
	// Resuming the stream replays the events after Last-Event-ID, and ends the
	// previous response.
	again := readEvents(t, s.send(ctxFor(t), "GET", "", append(h, headerLastEvent, first)...))
	if m := again.want(); m.Method != "notifications/one" {
		t.Fatalf("replay = %+v", m)
	}
	e.wantEnd()
	s.Notify("notifications/two", nil)
	if m := again.want(); m.Method != "notifications/two" {
		t.Fatalf("got %+v", m)
	}
	wantBody(t, s.do("DELETE", "", h...), 204)
	again.wantEnd()
}

// A session's standalone stream on a hijacked connection: keep-alives, the end
// when the caller disconnects, and pending notifications when it reconnects.
func TestStandaloneStreamOnHijackedConnection(t *testing.T) {
	s := newSite(t, Options{KeepAlive: time.Millisecond}, &scripted{})
	h := s.open(mcp.Version20251125, `{}`)
	session := s.sessions.all()[0]
	ctx, cancel := context.WithCancel(ctxFor(t))
	resp := s.send(ctx, "GET", "", h...)
	e := readEvents(t, resp)
	for range 5 {
		if text, err := e.r.ReadString(':'); err != nil {
			t.Fatal(text, err)
		}
	}
	if session.idle() {
		t.Error("a session with a reader is idle")
	}
	s.Notify("notifications/one", nil)
	if m := e.want(); m.Method != "notifications/one" {
		t.Fatalf("got %+v", m)
	}
	cancel()
	for !session.idle() {
		<-ctxTick(t)
	}
	s.Notify("notifications/two", nil)
	again := readEvents(t, s.send(ctxFor(t), "GET", "", h...))
	if m := again.want(); m.Method != "notifications/two" {
		t.Fatalf("got %+v", m)
	}
	s.end(session)
	again.wantEnd()
}

// If the connection cannot be hijacked the stream is served nevertheless.
func TestStandaloneStreamWithoutHijacking(t *testing.T) {
	srv := New(Options{}, &scripted{})
	s := newSite(t, Options{}, &scripted{})
	s.Server = srv
	s.url = newHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-As") == "2" {
			r.ProtoMajor = 2
		}
		srv.ServeHTTP(plainWriter{w}, r)
	}))
	h := s.open(mcp.Version20251125, `{}`)
	for _, as := range []string{"1", "2"} {
		e := readEvents(t, s.send(ctxFor(t), "GET", "", append(h, "X-As", as)...))
		srv.Notify("notifications/one", json.RawMessage(`{"as":`+as+`}`))
		if m := e.want(); string(rawjson.Field(m.Params, "as")) != as {
			t.Fatalf("got %+v", m)
		}
	}
	srv.Close()
}

// plainWriter hides the optional methods of a ResponseWriter, except Flush.
type plainWriter struct{ http.ResponseWriter }

func (w plainWriter) Flush()                      { w.ResponseWriter.(http.Flusher).Flush() }
func (w plainWriter) Unwrap() http.ResponseWriter { return nothing{} }

type nothing struct{ http.ResponseWriter }
