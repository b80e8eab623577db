package mcptrace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

func plain(b json.RawMessage) json.RawMessage { return b }

// exchange traces a request and its response.
func exchange(tr *Trace, server string, r tool.Request, result json.RawMessage, err error) {
	id, _ := tr.Request(server, r)
	tr.Response(id, server, r, result, err)
}

// TestSmallPartsDoNotRetainLargeBodies traces requests whose params are a small
// part of the body: the trace must not retain the rest.
func TestSmallPartsDoNotRetainLargeBodies(t *testing.T) {
	tr := New(plain)
	for range 60 {
		pad := bytes.Repeat([]byte("x"), 1<<20)
		body := append(append([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","pad":"`), pad...), `","params":{"name":"t","arguments":{}}}`...)
		m, err := mcp.Decode(body, mcp.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		failed := &mcp.Error{Code: -32000, Message: "no", Data: json.RawMessage(append(pad[:0:len(pad)], `{"a":1}`...))}
		exchange(tr, "s", tool.Request{Method: m.Method, Params: m.Params}, m.Params, failed)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 30<<20 {
		t.Errorf("after 60 requests of 1 MiB with small parameters the heap has %d MiB", m.HeapAlloc>>20)
	}
	if n := len(tr.Records().Latest(0)); n != 120 {
		t.Errorf("%d records, want 120", n)
	}
	runtime.KeepAlive(tr)
}

func TestTraceIsBounded(t *testing.T) {
	tr := New(plain)
	large := json.RawMessage(strings.Repeat("x", 32<<10))
	for range 3 * maxEntries {
		tr.add(Record{Method: string(large)}, large, errors.New(string(large)))
	}
	total := 0
	for _, r := range tr.ring.Latest(0) {
		total += cap(r.payload.text) + cap(r.err.text) + len(r.Method)
	}
	if limit := maxEntries * (2*(maxPayload+margin) + 2048); total > limit {
		t.Errorf("%d bytes are kept, want at most %d", total, limit)
	}
	if e := tr.Show(tr.ring.Latest(1)[0]); len(e.Payload) > maxPayload+100 || len(e.Error) > maxPayload+100 || !strings.Contains(string(e.Payload), "(32768 bytes in all)") {
		t.Errorf("payload of %d bytes, error of %d", len(e.Payload), len(e.Error))
	}
	if got := tr.Show(Record{payload: beginning([]byte(`{"broken`))}); string(got.Payload) != `"{\"broken"` {
		t.Errorf("%s", got.Payload)
	}
	(*Trace)(nil).Step(Incoming, "x", "", nil, nil) // records nothing
}

// TestMessagesOfCallNameItsTool: all messages of a call have its tool, so that
// they can be shown only to callers who may use it.
func TestMessagesOfCallNameItsTool(t *testing.T) {
	tr := New(plain)
	for _, r := range []tool.Request{
		{Method: mcp.MethodToolsCall, Params: json.RawMessage(`{"_meta":{"name":"x"},"name":"re\u0061d","arguments":{"name":"y"}}`)},
		{Method: "resources/read", Params: json.RawMessage(`{"name":"read"}`)},
	} {
		r.Exchange = tool.Exchange{
			Notify: func(string, json.RawMessage) {},
			Ask:    func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil },
		}
		id, observed := tr.Request("s", r)
		observed.Notify("notifications/progress", nil)
		if _, err := observed.Ask(t.Context(), "roots/list", nil); err != nil {
			t.Fatal(err)
		}
		tr.Response(id, "s", r, nil, nil)
	}
	records := tr.Records().Latest(0)
	if len(records) != 10 {
		t.Fatalf("%d records, want 10", len(records))
	}
	for i, rec := range records {
		if want := []string{"read", "resources/read"}[i/5]; rec.Tool != want || rec.Server != "s" {
			t.Errorf("%s of %s:%s, want s:%s", rec.Method, rec.Server, rec.Tool, want)
		}
	}
}

func BenchmarkTrace(b *testing.B) {
	tr := New(plain)
	params := json.RawMessage(`{"name":"read_file","arguments":{"path":"/a"}}`)
	b.ReportAllocs()
	for b.Loop() {
		exchange(tr, "files", tool.Request{Method: "tools/call", Params: params}, params, nil)
	}
}
