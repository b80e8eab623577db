package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

// mirror is a server of both eras. It returns what it received from its client,
// and describes itself with the extensions that the client declares.
type mirror struct{}

func (mirror) Describe(_ context.Context, r *mcpserver.Request) (mcpserver.Description, error) {
	d := mcpserver.Description{Info: json.RawMessage(`{"name":"mirror","version":"1"}`), Capabilities: json.RawMessage(`{"tools":{}}`)}
	if v := rawjson.Field(r.Exchange.Capabilities, "extensions"); v != nil {
		d.Capabilities = rawjson.SetField(d.Capabilities, v, "extensions")
	}
	return d, nil
}

func (mirror) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

func (mirror) Serve(_ context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch r.Method {
	case "tools/list":
		return json.RawMessage(`{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}`), nil
	case "tools/call", "resources/list":
		return json.RawMessage(`{"content":[{"type":"text","text":"` + r.Protocol + `"}],"seen":` + string(r.Exchange.Capabilities) + `}`), nil
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: r.Method}
}

// A server that supports both eras gets requests in the caller's era. It gets
// the caller's declarations if the caller sees only that server.
func TestCallersEraAndExtensionsReachTheServer(t *testing.T) {
	t.Parallel()
	srv := mcpserver.New(mcpserver.Options{}, mirror{})
	ts := httptest.NewServer(srv)
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close(); srv.Close() })
	cfg := upstream.DefaultConfig()
	cfg.Name, cfg.URL = "m", ts.URL
	ours := mcpclient.Capabilities{Sampling: true, ElicitationForm: true, Extensions: json.RawMessage(`{"ours":{}}`)}
	r := newFixture(t, upstream.Options{Capabilities: ours}, cfg).run()
	r.state("m", upstream.Connected)
	ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	const declared = `{"sampling":{},"extensions":{"x.y/z":{"a":1}},"experimental":{"e":{}}}`
	for name, tt := range map[string]struct {
		ex         tool.Exchange
		method     string
		era        string
		extensions string
		sampling   bool
	}{
		"handshake, alone":                 {tool.Exchange{Protocol: mcp.Version20250618, Transparent: true, Capabilities: json.RawMessage(declared)}, "tools/call", mcp.Version20251125, `{"x.y/z":{"a":1}}`, true},
		"handshake, alone, a list":         {tool.Exchange{Protocol: mcp.Version20251125, Transparent: true, Capabilities: json.RawMessage(declared)}, "resources/list", mcp.Version20251125, `{"x.y/z":{"a":1}}`, true},
		"handshake, among others":          {tool.Exchange{Protocol: mcp.Version20251125, Capabilities: json.RawMessage(declared)}, "tools/call", mcp.Version20260728, `{"ours":{}}`, false},
		"handshake, among others, may ask": {tool.Exchange{Protocol: mcp.Version20251125, Ask: ask, Capabilities: json.RawMessage(declared)}, "tools/call", mcp.Version20251125, `{"ours":{}}`, true},
		"new, alone":                       {tool.Exchange{Protocol: mcp.Version20260728, PassInput: true, Transparent: true, Capabilities: json.RawMessage(declared)}, "tools/call", mcp.Version20260728, `{"x.y/z":{"a":1}}`, true},
		"new, alone, a list":               {tool.Exchange{Protocol: mcp.Version20260728, PassInput: true, Transparent: true, Capabilities: json.RawMessage(declared)}, "resources/list", mcp.Version20260728, `{"x.y/z":{"a":1}}`, true},
		"new, among others":                {tool.Exchange{Protocol: mcp.Version20260728, PassInput: true, Capabilities: json.RawMessage(declared)}, "tools/call", mcp.Version20260728, `{"ours":{}}`, true},
		"another API":                      {tool.Exchange{}, "tools/call", mcp.Version20260728, `{"ours":{}}`, false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		result, err := r.Do(ctx, "m", tool.Request{Method: tt.method, Params: json.RawMessage(`{"name":"look"}`), Caller: "c", Exchange: tt.ex})
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if era := upstreamtest.TextOf(result); era != tt.era {
			t.Errorf("%s: the server was spoken to in %s, want %s", name, era, tt.era)
		}
		if got := string(rawjson.Field(result, "seen", "extensions")); got != tt.extensions {
			t.Errorf("%s: extensions %s reached the server, want %s", name, got, tt.extensions)
		}
		if got := rawjson.Field(result, "seen", "sampling") != nil; got != tt.sampling {
			t.Errorf("%s: sampling declared: %t, want %t", name, got, tt.sampling)
		}
		if want := tt.ex.Transparent; (rawjson.Field(result, "seen", "experimental") != nil) != want {
			t.Errorf("%s: experimental capabilities declared: %t, want %t", name, !want, want)
		}
		if !tt.ex.Transparent {
			continue
		}
		info, ok := r.Describe(t.Context(), "m", "c", tt.ex)
		if got := string(rawjson.Field(info.Capabilities, "extensions")); !ok || got != tt.extensions {
			t.Errorf("%s: the server describes itself with extensions %s, want %s", name, got, tt.extensions)
		}
	}
}

// On stdio the other era has a separate process, which all its callers share.
func TestCallersEraOnStdio(t *testing.T) {
	t.Parallel()
	r := newFixture(t, upstream.Options{}, upstreamtest.Stdio(t, "s", upstreamtest.Script{})).run()
	r.state("s", upstream.Connected)
	handshake := tool.Exchange{Protocol: mcp.Version20251125, Transparent: true}
	for caller, ex := range map[string]tool.Exchange{"a": handshake, "b": handshake, "c": {Protocol: mcp.Version20260728, Transparent: true}} {
		want := "1" // the first and only session of the process
		if mcp.Stateless(ex.Protocol) {
			want = "0"
		}
		if got, err := r.callAs(caller, "s", "whoami", `{}`, ex); err != nil || got != want {
			t.Errorf("%s is in session %s, %v; want %s", caller, got, err, want)
		}
	}
}

// If the server refuses the era that it claims to support, calls use the other.
func TestEraThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	r := newFixture(t, upstream.Options{}, upstreamtest.Stdio(t, "s", upstreamtest.Script{LeaveOn: "initialize"})).run()
	r.state("s", upstream.Connected)
	got, err := r.callAs("a", "s", "whoami", `{}`, tool.Exchange{Protocol: mcp.Version20251125, Transparent: true})
	if err != nil || got != "0" {
		t.Errorf("whoami = %q, %v; want an answer in the stateless era", got, err)
	}
}

// Callers can declare anything, but the connections for that are limited.
func TestConnectionsThatCallersChooseAreFew(t *testing.T) {
	t.Parallel()
	srv := mcpserver.New(mcpserver.Options{}, mirror{})
	ts := httptest.NewServer(srv)
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close(); srv.Close() })
	cfg := upstream.DefaultConfig()
	cfg.Name, cfg.URL = "m", ts.URL
	r := newFixture(t, upstream.Options{}, cfg).run()
	r.state("m", upstream.Connected)
	for n := range 20 {
		declared := json.RawMessage(fmt.Sprintf(`{"experimental":{"e":{"n":%d}}}`, n))
		if _, err := r.callAs("c", "m", "look", `{}`, tool.Exchange{Protocol: mcp.Version20251125, Transparent: true, Capabilities: declared}); err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
	}
	if st, _ := r.StatusOf("m"); st.Sessions == 0 || st.Sessions > 2 {
		t.Errorf("%d connections of one caller beside the shared one; want 1 or 2", st.Sessions)
	}
	for n := range 20 {
		declared := json.RawMessage(fmt.Sprintf(`{"experimental":{"e":{"n":%d}}}`, 100+n))
		if _, err := r.callAs(fmt.Sprint(n), "m", "look", `{}`, tool.Exchange{Protocol: mcp.Version20251125, Transparent: true, Capabilities: declared}); err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
	}
	if st, _ := r.StatusOf("m"); st.Sessions != 8 {
		t.Errorf("%d connections beside the shared one; want 8", st.Sessions)
	}
}

// A caller whose connections keep state on the server, as processes do, cannot
// use up the connections that others may choose.
func TestOneCallerLeavesConnectionsForOthers(t *testing.T) {
	t.Parallel()
	r := newFixture(t, upstream.Options{}, upstreamtest.Stdio(t, "s", upstreamtest.Script{})).run()
	r.state("s", upstream.Connected)
	call := func(caller string, n int) string {
		declared := json.RawMessage(fmt.Sprintf(`{"experimental":{"e":{"n":%d}}}`, n))
		got, err := r.callAs(caller, "s", "whoami", `{}`, tool.Exchange{Protocol: mcp.Version20251125, Transparent: true, Capabilities: declared})
		if err != nil {
			t.Fatalf("%s, %d: %v", caller, n, err)
		}
		return got
	}
	for n := range 5 {
		call("greedy", n)
	}
	before, _ := r.StatusOf("s")
	call("other", 100)
	if after, _ := r.StatusOf("s"); before.Sessions != 2 || after.Sessions != 3 {
		t.Errorf("%d connections for the first caller and %d with the second; want 2 and 3", before.Sessions, after.Sessions)
	}
}
