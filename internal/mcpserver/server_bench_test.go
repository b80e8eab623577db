package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkServeHTTP measures the server side of one call, compared to a
// handler that only reads the body and responds.
func BenchmarkServeHTTP(b *testing.B) {
	answer := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 100) + `"}]}`)
	s := New(Options{}, &scripted{serve: func(context.Context, *Request) (json.RawMessage, error) { return answer, nil }})
	defer s.Close()
	body, headers := modern(1, "tools/call", `{"name":"echo","arguments":{"text":"hello"}}`, `{}`)
	session := func() []string {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(initialize))
		r.Header.Set("Content-Type", "application/json")
		s.ServeHTTP(w, r)
		return []string{headerSession, w.Header().Get(headerSession)}
	}()
	for name, bb := range map[string]struct {
		handler http.Handler
		body    string
		headers []string
	}{
		"bare": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer)
		}), body, headers},
		"stateless": {s, body, headers},
		"session":   {s, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`, session},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(bb.body))
				r.Header.Set("Content-Type", "application/json")
				for i := 0; i < len(bb.headers); i += 2 {
					r.Header.Set(bb.headers[i], bb.headers[i+1])
				}
				w := httptest.NewRecorder()
				bb.handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
