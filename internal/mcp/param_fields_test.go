package mcp

import (
	"encoding/json"
	"testing"

	"junctor/internal/rawjson"
)

// FuzzParamFields compares the single pass with a search for each member.
func FuzzParamFields(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{"name":"a","arguments":{"x":1},"_meta":{"progressToken":7}}`, `{"na\u006de":"a","name":"b"}`,
		`{"_meta":{"progressToken":1},"_meta":{"io.modelcontextprotocol/logLevel":"info"}}`, `{"name":1,"uri":"u","requestState":"s"`,
		` { "_meta" : { "io.modelcontextprotocol/protocolVersion" : "2026-07-28" , "io.modelcontextprotocol\/clientInfo":{} } } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		params := json.RawMessage(data)
		got := ReadFields(params)
		for _, tt := range []struct {
			field json.RawMessage
			path  []string
		}{
			{got.Name, []string{"name"}}, {got.URI, []string{"uri"}}, {got.Arguments, []string{"arguments"}},
			{got.Meta, []string{"_meta"}}, {got.State, []string{"requestState"}},
			{got.Version, []string{"_meta", MetaProtocolVersion}}, {got.Client, []string{"_meta", MetaClientInfo}},
			{got.Capabilities, []string{"_meta", MetaClientCapabilities}}, {got.LogLevel, []string{"_meta", MetaLogLevel}},
			{got.ProgressToken, []string{"_meta", "progressToken"}},
		} {
			if want := rawjson.Field(params, tt.path...); string(want) != string(tt.field) || (want == nil) != (tt.field == nil) {
				t.Errorf("%v of %q: %q, want %q", tt.path, data, tt.field, want)
			}
		}
	})
}
