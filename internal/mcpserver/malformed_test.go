package mcpserver

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"junctor/internal/mcp"
)

func TestStreamRefusesInvalidMessages(t *testing.T) {
	s := New(Options{Limits: mcp.Limits{MaxBytes: 2000}}, &scripted{})
	l := newLine(t, s)
	for text, code := range map[string]int{
		`{"jsonrpc":`:              mcp.CodeParseError,
		`hello`:                    mcp.CodeParseError,
		`{"jsonrpc":"1.0"}`:        mcp.CodeInvalidRequest,
		`[]`:                       mcp.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":7}`: mcp.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":8,"method":"` + strings.Repeat("x", 3000) + `"}`: mcp.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`:            mcp.CodeInvalidParams,
	} {
		if m := l.ask(text); m.Error == nil || m.Error.Code != code {
			t.Errorf("%.40s: %+v", text, m)
		}
	}
	if m := l.ask(initialize); m.Result == nil { // a failed one may be retried
		t.Errorf("initialize: %+v", m)
	}
}

// Each of ten thousand malformed messages gets a response if one is due, and no
// state is left behind.
func TestMalformedMessages(t *testing.T) {
	const n = 10_000
	s := New(Options{}, &scripted{})
	defer s.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	seeds := []string{
		initialize, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
	}
	body, _ := modern(1, "tools/call", `{"name":"x","requestState":"junctor.1.AAAA","inputResponses":{}}`, elicits)
	seeds = append(seeds, body)
	broken := func() string {
		b := []byte(seeds[rng.IntN(len(seeds))])
		for range 1 + rng.IntN(4) {
			switch i := rng.IntN(len(b)); rng.IntN(3) {
			case 0:
				b[i] = byte(rng.IntN(256))
			case 1:
				b = append(b[:i], b[min(len(b), i+1+rng.IntN(5)):]...)
			default:
				b = append(b[:i:i], append([]byte{"{}[]\",:0"[rng.IntN(8)]}, b[i:]...)...)
			}
			if len(b) == 0 {
				b = []byte("x")
			}
		}
		return strings.ReplaceAll(string(b), "\n", " ")
	}
	t.Run("HTTP", func(t *testing.T) {
		for i := range n {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(broken()))
			r.Header.Set("Content-Type", "application/json")
			if i%3 == 0 {
				r.Header.Set(headerProtocol, mcp.Version20260728)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code >= 500 && w.Code != http.StatusServiceUnavailable || w.Code == 0 {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if w.Code != http.StatusAccepted && w.Body.Len() == 0 {
				t.Fatalf("status %d without a word", w.Code)
			}
		}
	})
	t.Run("stream", func(t *testing.T) {
		l := newLine(t, s)
		answers := 0
		end := make(chan struct{})
		go func() {
			defer close(end)
			for {
				data, err := l.out.Next()
				if err != nil {
					return
				}
				m, err := mcp.Decode(data, mcp.Limits{})
				if err != nil {
					t.Errorf("%v: %s", err, data)
				}
				if answers++; m.IsRequest() {
					t.Errorf("asked: %s", data)
				}
			}
		}()
		for range n {
			l.send(broken())
		}
		l.in.Close()
		l.wantEnd()
		<-end
		if answers < n/2 {
			t.Errorf("%d answers to %d messages", answers, n)
		}
	})
	if s.parked.len() != 0 || s.subs.len() != 0 {
		t.Errorf("%d parked, %d subscriptions left", s.parked.len(), s.subs.len())
	}
}

func FuzzServeHTTP(f *testing.F) {
	f.Add(initialize, "", "")
	body, _ := modern(1, "tools/call", `{"name":"x"}`, elicits)
	f.Add(body, mcp.Version20260728, "tools/call")
	f.Add(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, mcp.Version20250326, "")
	s := New(Options{}, &scripted{})
	f.Fuzz(func(t *testing.T, body, version, method string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header[headerProtocol] = []string{version}
		r.Header[headerMethod] = []string{method}
		if method == "subscriptions/listen" {
			cancel()
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}
