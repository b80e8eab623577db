package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/tool"
)

// large returns a result in lent memory, after calling f if that is not nil.
func large(lent chan<- *tool.ResultMemory, f func(*Request)) *scripted {
	return &scripted{serve: func(_ context.Context, r *Request) (json.RawMessage, error) {
		if f != nil {
			f(r)
		}
		r.LendMemory()
		result := `{"text":"` + strings.Repeat("x", 100_000) + `"}`
		raw := append(r.Exchange.Memory.Get(len(result)), result...)
		lent <- r.Exchange.Memory
		return raw, nil
	}}
}

// The memory of a result is returned when its plain response has been written,
// and only then: the memory of events that are kept for a replay is not reused.
func TestResultMemoryIsReturnedAfterItsResponse(t *testing.T) {
	lent := make(chan *tool.ResultMemory, 1)
	progress := func(r *Request) {
		r.Exchange.Notify("notifications/progress", json.RawMessage(`{"progressToken":1,"progress":1}`))
	}
	for name, tt := range map[string]struct {
		modern, free bool
		first        func(*Request)
	}{
		"plain":            {true, true, nil},
		"an event stream":  {true, false, progress},
		"an older version": {false, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, Options{}, large(lent, tt.first))
			body, headers := modern(1, "tools/call", `{"name":"x"}`, `{}`)
			if !tt.modern {
				body, headers = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, s.open("2025-11-25", `{}`)
			}
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), strings.Repeat("x", 100_000)) {
				t.Errorf("%d %.200s", w.Code, w.Body)
			}
			if m := <-lent; m.Lent() == tt.free && m != nil {
				t.Errorf("lent = %v", m.Lent())
			}
		})
	}
}

// A call that ends while it is parked keeps its result for the retry.
func TestResultOfParkedCallIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lent := make(chan *tool.ResultMemory, 1)
		s := New(Options{}, large(lent, func(r *Request) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, _ = r.Exchange.Ask(ctx, "elicitation/create", nil)
		}))
		defer s.Close()
		out := &capture{}
		req := modernRequestFor(t, s, 1, "tools/call", `{"name":"x"}`)
		req.lends = true
		s.startStateless(t.Context(), req, out)
		synctest.Wait()
		_, state := inputs(t, out.last().Result)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if m := <-lent; !m.Lent() {
			t.Error("the memory was returned before the retry")
		}
		again := &capture{}
		s.startStateless(t.Context(), modernRequestFor(t, s, 2, "tools/call", `{"name":"x","requestState":"`+state+`"}`), again)
		if m := again.last(); !strings.Contains(string(m.Result), strings.Repeat("x", 100_000)) {
			t.Errorf("retry: %.200s", m.Result)
		}
	})
}
