package mcp

import (
	"encoding/json"
	"junctor/internal/rawjson"
	"testing"
)

// FuzzRequestFields holds the one walk to what a search for each member finds.
func FuzzRequestFields(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{"name":"a","arguments":{"x":1},"_meta":{"progressToken":7}}`, `{"na\u006de":"a","name":"b"}`,
		`{"_meta":{"progressToken":1},"_meta":{"io.modelcontextprotocol/logLevel":"info"}}`, `{"name":1,"uri":"u","requestState":"s"`,
		` { "_meta" : { "io.modelcontextprotocol/protocolVersion" : "2026-07-28" , "io.modelcontextprotocol\/clientInfo":{} } } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		params := json.RawMessage(data)
		got := readFields(params)
		for _, tt := range []struct {
			field json.RawMessage
			path  []string
		}{
			{got.name, []string{"name"}}, {got.uri, []string{"uri"}}, {got.arguments, []string{"arguments"}},
			{got.meta, []string{"_meta"}}, {got.state, []string{"requestState"}},
			{got.version, []string{"_meta", MetaProtocolVersion}}, {got.client, []string{"_meta", MetaClientInfo}},
			{got.capabilities, []string{"_meta", MetaClientCapabilities}}, {got.logLevel, []string{"_meta", MetaLogLevel}},
			{got.progress, []string{"_meta", "progressToken"}},
		} {
			if want := rawjson.Field(params, tt.path...); string(want) != string(tt.field) || (want == nil) != (tt.field == nil) {
				t.Errorf("%v of %q: %q, want %q", tt.path, data, tt.field, want)
			}
		}
	})
}

// What was read of one request's params must not be used for others.
func TestRequestFieldsFollowParams(t *testing.T) {
	r := &Request{Params: json.RawMessage(`{"name":"a","arguments":1,"_meta":{}}`)}
	if r.Name() != "a" || string(r.Arguments()) != "1" || string(r.Meta()) != "{}" {
		t.Errorf("%q, %s, %s", r.Name(), r.Arguments(), r.Meta())
	}
	r.Params = json.RawMessage(`{"name":"b"}`)
	if r.Name() != "b" || r.Arguments() != nil || r.Meta() != nil {
		t.Errorf("%q, %s, %s", r.Name(), r.Arguments(), r.Meta())
	}
	r.Params = nil
	if r.Name() != "" {
		t.Errorf("%q", r.Name())
	}
}
