package chatclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"junctor/internal/terminal"
)

func TestTerminalForms(t *testing.T) {
	const form = `{"type":"object","required":["n"],"properties":{
		"n":{"type":"integer","title":"Number","description":"of them"},
		"ok":{"type":"boolean"},
		"pet":{"type":"string","oneOf":[{"const":"a","title":"Ape"},{"const":"b","title":"Bee"}]},
		"kinds":{"type":"array","items":{"enum":["x","y","z"]}},
		"word":{"type":"string","default":"so"},
		"left":{"type":"string"},
		"odd":7}}`
	var errs bytes.Buffer
	t1 := &terminalChat{Terminal: &terminal.Terminal{Err: &errs}, input: bufio.NewReader(strings.NewReader("many\n0x10\n7\ny\nbear\nbee\nx, z\n\n\n"))}
	got, ok := t1.fill(json.RawMessage(form))
	out, err := json.Marshal(got)
	if !ok || err != nil || string(out) != `{"kinds":["x","z"],"n":7,"ok":true,"pet":"b","word":"so"}` {
		t.Errorf("%v %s %v", ok, out, err)
	}
	for _, want := range []string{"Number (of them) *: ", "ok [y/n]: ", "pet [Ape, Bee]: ", "separated by commas", `word, default "so": `, `"many" is not a number`, `"0x10" is not a number`, `"bear" is not one of the choices`} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, errs.String())
		}
	}
}

// A person may think for as long as they like: the connection is read
// meanwhile, so that the gateway knows that they are still there.
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
	l := &chatLine{seq: -1, client: &http.Client{Transport: &http.Transport{
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
	<-l.done // the server has left; what it had said is still there
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
