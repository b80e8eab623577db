package discovery

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// post sends a message to a view over HTTP.
func (r *fixture) post(path, session, body string) (status int, header http.Header, answer string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctxFor(r.t), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Error(err)
		return 0, nil, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Error(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func TestSubscribeWhileSessionEnds(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"a": newTestServer(issueTool)})
	for round := range 20 {
		_, header, _ := r.post("/mcp/a", "", initializeBody)
		session := header.Get("Mcp-Session-Id")
		if session == "" {
			t.Fatal("no session")
		}
		var wg sync.WaitGroup
		subscribed := make(chan struct{}, 1)
		for w := range 8 {
			wg.Go(func() {
				for i := range 50 {
					status, _, _ := r.post("/mcp/a", session, fmt.Sprintf(
						`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"note:%d-%d-%d"}}`, 10+w*1000+i, round, w, i))
					select {
					case subscribed <- struct{}{}:
					default:
					}
					if status == http.StatusNotFound {
						return
					}
				}
			})
		}
		<-subscribed
		req, err := http.NewRequestWithContext(ctxFor(t), http.MethodDelete, r.url+"/mcp/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", session)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		wg.Wait()
	}
	f := &r.Face.follows
	until(t, "nothing is left of the sessions", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.sessions) == 0 && len(f.counts) == 0
	})
}
