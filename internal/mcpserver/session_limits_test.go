package mcpserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"junctor/internal/mcp"
)

// A session lives for hours, so the data of its client that it stores is
// bounded.
func TestSessionsKeepLittleOfTheirClients(t *testing.T) {
	for name, params := range map[string]string{
		"capabilities": `{"protocolVersion":"2025-11-25","capabilities":{"x":%q},"clientInfo":{"name":"t"}}`,
		"clientInfo":   `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q}}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":` + fmt.Sprintf(params, strings.Repeat("x", 1<<20)) + `}`
			s := newSite(t, Options{}, &scripted{})
			if r := s.post(body); !strings.Contains(r.body, "too large") || r.header.Get(headerSession) != "" || s.Sessions() != 0 {
				t.Errorf("over HTTP: %d %.200s, %d sessions", r.status, r.body, s.Sessions())
			}
			l := newLine(t, New(Options{}, &scripted{}))
			if m := l.ask(body); m.Error == nil || m.Error.Code != mcp.CodeInvalidParams {
				t.Errorf("on a stream: %.200s", m.Result)
			}
			if m := l.ask(initialize); m.Error != nil {
				t.Errorf("a smaller one: %v", m.Error)
			}
		})
	}
	t.Run("uri", func(t *testing.T) {
		s := newSite(t, Options{}, &scripted{})
		h := s.open(mcp.Version20251125, `{}`)
		subscribe := func(uri string) reply {
			return s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":%q}}`, uri), h...)
		}
		wantBody(t, subscribe("file:///"+strings.Repeat("x", 1<<20)), http.StatusOK, "too long")
		wantBody(t, subscribe("file:///a"), http.StatusOK, `"result"`)
		if uris := s.sessions.all()[0].Subscriptions(); len(uris) != 1 || uris[0] != "file:///a" {
			t.Errorf("%d resources are followed", len(uris))
		}
	})
}
