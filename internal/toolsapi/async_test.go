package toolsapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/httperr"
	"junctor/internal/listing"
	"junctor/internal/sqlite"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// asking is an executor whose calls ask a question first.
type asking struct{}

func (asking) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	answer, err := c.Exchange.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"sure?"}`))
	return tool.Result{Raw: json.RawMessage(`{"content":[],"answer":` + string(answer) + `}`)}, err
}

// A call with wait false is answered immediately. Its question and its result
// are in the record that the response identifies.
func TestExecuteWithoutWaiting(t *testing.T) {
	t.Parallel()
	cfg := store.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "junctor.db")
	log := slog.New(slog.DiscardHandler)
	s, err := sqlite.Open(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	calls := waiting.NewService(s, log)
	a := New(Options{
		Tools:    listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: noServers{}}),
		Executor: asking{}, Waiting: calls,
	})
	w := httptest.NewRecorder()
	ctx, cancel := context.WithTimeout(tool.WithCaller(context.Background(), tool.Local), time.Minute)
	defer cancel()
	request, leave := context.WithCancel(ctx)
	httperr.Handler(a.execute)(w, httptest.NewRequestWithContext(request, http.MethodPost, "/execute", strings.NewReader(`{"provider":"gemini","call":{"name":"x","args":{}},"wait":false}`)))
	leave() // the call continues
	if w.Code != http.StatusAccepted {
		t.Fatalf("HTTP %d %s", w.Code, w.Body)
	}
	id := strings.TrimPrefix(w.Header().Get("Location"), "/api/calls/")
	record, err := calls.Get(ctx, id)
	for err == nil && record.Status == waiting.Working {
		record, err = calls.Await(ctx, id, record.Version)
	}
	if err != nil || record.Status != waiting.InputRequired {
		t.Fatalf("status = %s, %v; want input_required", record.Status, err)
	}
	if _, err := calls.Answer(ctx, id, record.Inputs[0].ID, tool.Local, json.RawMessage(`{"action":"accept"}`), func(*waiting.Record, *waiting.Input) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for err == nil && !record.Status.Final() {
		record, err = calls.Await(ctx, id, record.Version)
	}
	if err != nil || !strings.Contains(string(record.Result), `"accept"`) {
		t.Errorf("record = %+v, %v", record, err)
	}
}
