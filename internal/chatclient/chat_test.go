package chatclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"junctor/internal/terminal"
)

// TestChatAnswersPingsWhileWaitingForInput: the connection is read while the
// user types, so that the gateway's pings are answered.
func TestChatAnswersPingsWhileWaitingForInput(t *testing.T) {
	pinged := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		if r.URL.Query().Get("sessionId") != "" { // the second time
			_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"text","seq":8,"payload":{"content":"`+r.URL.RawQuery+`"}}`))
			<-conn.CloseRead(r.Context()).Done()
			return
		}
		_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"connection","seq":7,"payload":{"state":"connected","sessionId":"S"}}`))
		pinged <- conn.Ping(conn.CloseRead(r.Context()))
	}))
	defer server.Close()
	l := &connection{seq: -1, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		}}}}
	if err := l.dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { l.close() }()
	if err := <-pinged; err != nil {
		t.Fatalf("nobody answered: %v", err)
	}
	<-l.done // the server has closed; its messages can still be read
	if m, err := l.next(t.Context()); err != nil || m.Seq != 7 || l.session != "S" {
		t.Fatalf("%+v %v", m, err)
	}
	if _, err := l.next(t.Context()); err == nil {
		t.Error("no error after the end")
	}
	if err := l.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, err := l.next(t.Context()); err != nil || !strings.Contains(string(m.Payload), "after=7&sessionId=S") {
		t.Errorf("%s %v", m.Payload, err)
	}
}

// TestRefusedMessageEndsTheTurn checks that the chat does not wait for the reply
// to a message that the gateway refused, whatever the reason.
func TestRefusedMessageEndsTheTurn(t *testing.T) {
	printed, err := reply(t, `{"type":"error","seq":7,"payload":{"code":"TOO_LARGE","message":"the message has 9 bytes"}}`)
	if !errors.Is(err, ErrNoReply) || !strings.Contains(printed, "9 bytes") {
		t.Errorf("Run = %v, printed %q", err, printed)
	}
}

// TestEndOfInterruptedReplyIsNotOfTheNext: with the next message a gateway ends
// a reply whose process died.
func TestEndOfInterruptedReplyIsNotOfTheNext(t *testing.T) {
	printed, err := reply(t,
		`{"type":"error","seq":8,"payload":{"code":"INTERRUPTED","message":"the gateway was stopped"}}`,
		`{"type":"status","seq":9,"payload":{"state":"complete","message":"Interrupted"}}`,
		`{"type":"message","seq":10,"payload":{"id":"m","text":"a message"}}`,
		`{"type":"text","seq":11,"payload":{"content":"the reply"}}`,
		`{"type":"status","seq":12,"payload":{"state":"complete"}}`)
	if err != nil || !strings.Contains(printed, "the reply") {
		t.Errorf("Run = %v, printed %q", err, printed)
	}
}

// reply sends one message to a gateway that answers with events. It returns
// what is printed.
func reply(t *testing.T, events ...string) (string, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"connection","seq":7,"payload":{"state":"connected","sessionId":"S"}}`))
		if _, _, err := conn.Read(r.Context()); err == nil {
			for _, e := range events {
				_ = conn.Write(r.Context(), websocket.MessageText, []byte(e))
			}
		}
		<-conn.CloseRead(r.Context()).Done()
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		}}}
	var printed strings.Builder
	term := &terminal.Terminal{In: strings.NewReader(""), Out: &printed, Err: &printed, Width: func(io.Writer) (int, bool) { return 0, false }}
	err := Run(t.Context(), term, client, Options{Message: "a message"})
	return printed.String(), err
}
