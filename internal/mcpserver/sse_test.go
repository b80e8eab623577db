package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// The transport of 2024-11-05, with the client of package mcpclient.
func TestSSETransport(t *testing.T) {
	s := newSite(t, Options{KeepAlive: time.Millisecond}, asking(1, nil))
	received := make(chan string, 10)
	c, err := mcpclient.Connect(ctxFor(t), mcpclient.NewSSE(mcpclient.HTTPOptions{URL: s.url + "/mcp?mode=x"}), mcpclient.Options{
		Capabilities: mcpclient.Capabilities{ElicitationForm: true}, OnNotification: func(method string, _ json.RawMessage) { received <- method },
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x","_meta":{"progressToken":"first"}}`), Exchange: tool.Exchange{
		Capabilities: json.RawMessage(`{"elicitation":{}}`),
		Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"accept","content":{"x":"yes"}}`), nil
		},
	}})
	if err != nil || !strings.Contains(string(got), "yes") {
		t.Fatalf("Do = %s, %v", got, err)
	}
	if got := c.Info().Protocol; got != mcp.Version20251125 {
		t.Errorf("protocol %s", got)
	}
	s.Notify("notifications/tools/list_changed", nil)
	if got := <-received; got != "notifications/tools/list_changed" {
		t.Errorf("received %s", got)
	}
	c.Close()
	for {
		s.sse.mu.Lock()
		n := len(s.sse.links)
		s.sse.mu.Unlock()
		if n == 0 {
			break
		}
		<-ctxTick(t)
	}
}

func TestSSERefusesInvalidRequests(t *testing.T) {
	s := newSite(t, Options{}, &scripted{})
	url := s.url
	s.url += "?sessionId=nobody"
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), 404, "no such stream")
	s.url = url
	resp := s.send(ctxFor(t), "GET", "", "Accept", "text/event-stream")
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	var address string
	for address == "" {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			address = strings.TrimSpace(data)
		}
	}
	if !strings.HasPrefix(address, "/?sessionId=") {
		t.Errorf("address %s", address)
	}
	// Errors for malformed messages are sent on the stream like other
	// responses.
	s.url = url + address
	wantBody(t, s.post(`{"jsonrpc":`), 202)
	wantBody(t, s.post(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`), 202)
	for _, part := range []string{"-32700", `"id":1,"result":{}`} {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "data: ") {
				if !strings.Contains(line, part) {
					t.Errorf("got %s, want %s", line, part)
				}
				break
			}
		}
	}
	s.sse.mu.Lock()
	for i := range maxStreams {
		s.sse.links[string(rune('a'+i%26))+strings.Repeat("x", i)] = nil
	}
	s.sse.mu.Unlock()
	s.url = url
	wantBody(t, s.do("GET", "", "Accept", "text/event-stream"), 503, "too many streams")
	s.Close()
	if _, err := in.ReadString('\x00'); err == nil {
		t.Error("the stream goes on")
	}
}
