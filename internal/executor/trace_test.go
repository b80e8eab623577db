package executor

import (
	"context"
	"encoding/json"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// TestTraceReachesTheUpstream: the caller's trace context is passed on in
// _meta, whether it was received as a header or in _meta. Without one the
// params are unchanged.
func TestTraceReachesTheUpstream(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r := newFixture(t)
	var got string
	r.do = func(_ context.Context, _ string, req tool.Request) (json.RawMessage, error) {
		got = string(req.Params)
		return json.RawMessage(`{"content":[]}`), nil
	}
	parent := telemetry.ParseTrace(trace, "a=b")
	header := telemetry.WithTrace(t.Context(), parent)
	const meta = `"_meta":{"tracestate":"a=b","traceparent":"` + trace + `"}`
	const plain = `{"name":"write" , "arguments":{}}`
	for name, tt := range map[string]struct {
		ctx    context.Context
		params string
		want   string
	}{
		"none":      {t.Context(), plain, plain},
		"header":    {header, plain, `{` + meta + `,"name":"write" , "arguments":{}}`},
		"meta":      {t.Context(), `{"name":"write","_meta":{"traceparent":"` + trace + `"}}`, `{"name":"write","_meta":{"traceparent":"` + trace + `"}}`},
		"not one":   {t.Context(), `{"name":"write","_meta":{"traceparent":"x"}}`, `{"name":"write","_meta":{"traceparent":"x"}}`},
		"no params": {header, "", `{` + meta + `,"name":"write","arguments":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := call("write", `{}`)
			if tt.params != "" {
				in := mcp.ReadFields(json.RawMessage(tt.params))
				c.Arguments, c.Meta, c.Params = in.Arguments, in.Meta, json.RawMessage(tt.params)
			}
			if _, err := r.Call(tt.ctx, c); err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("params = %s, want %s", got, tt.want)
			}
			if rec := r.records[len(r.records)-1]; name == "meta" && rec.TraceID != parent.TraceID().String() {
				t.Errorf("trace of the record = %s, want %s", rec.TraceID, parent.TraceID().String())
			}
			if _, err := r.Forward(tt.ctx, tool.Forward{Face: "broker", Caller: tool.Local, Server: "fs", Method: "resources/list", Params: json.RawMessage(tt.params)}); err != nil {
				t.Fatal(err)
			}
			if name == "header" && got != tt.want {
				t.Errorf("forwarded params = %s, want %s", got, tt.want)
			}
		})
	}
}
