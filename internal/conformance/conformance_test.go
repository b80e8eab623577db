package conformance

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
)

// suite simulates the server of the conformance suite in the stateless era and
// records the requests.
type suite struct {
	mu    sync.Mutex
	asked []string
	fail  string // a method that gets an error response
}

const tools = `[{"name":"add_numbers","inputSchema":{"type":"object"}},
{"name":"test_client_elicitation_defaults","inputSchema":{"type":"object"}},
{"name":"test_reconnection","inputSchema":{"type":"object"}},
{"name":"json_schema_2020_12_tool","inputSchema":{"type":"object","$defs":{"a":{"type":"string"}}}},
{"name":"bad","inputSchema":{"type":"object","properties":{"x":{"type":"object","x-mcp-header":"X"}}}},
{"name":"routed","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]`

func (s *suite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	m, err := mcp.Decode(body, mcp.Limits{})
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	note := m.Method + " " + rawjson.FieldString(m.Params, "name") + rawjson.FieldString(m.Params, "uri") + string(rawjson.Field(m.Params, "arguments")) +
		string(rawjson.Field(m.Params, "inputResponses")) + r.Header.Get("Mcp-Param-Region")
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(note))
	s.mu.Unlock()
	result := `{"resultType":"complete"}`
	switch {
	case m.Method == s.fail:
		w.WriteHeader(http.StatusNotFound)
		w.Write(mcp.AppendMessage(nil, &mcp.Message{ID: m.ID, Error: &mcp.Error{Code: -32601, Message: "no"}}))
		return
	case m.Method == "server/discover":
		result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	case m.Method == "tools/list":
		result = `{"tools":` + tools + `}`
	case m.Method == "resources/list":
		result = `{"resources":[{"uri":"test://1"},{"uri":"test://2"}]}`
	case m.Method == "prompts/list":
		result = `{"prompts":[{"name":"p1"}]}`
	case rawjson.FieldString(m.Params, "name") == "test_client_elicitation_defaults" && rawjson.Field(m.Params, "inputResponses") == nil:
		result = `{"resultType":"input_required","inputRequests":{"f":{"method":"elicitation/create","params":{"requestedSchema":{"properties":{"n":{"type":"integer","default":7},"ok":{"type":"boolean"},"s":{"type":"string"}}}}},"s":{"method":"sampling/createMessage"},"r":{"method":"roots/list"}}}`
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(mcp.AppendMessage(nil, &mcp.Message{ID: m.ID, Result: json.RawMessage(result)}))
}

func TestRun(t *testing.T) {
	for scenario, want := range map[string][]string{
		"initialize":          {"tools/list"},
		"tools_call":          {"tools/list", `tools/call add_numbers{"a":5,"b":3}`},
		"sse-retry":           {"tools/list", `tools/call test_reconnection{}`},
		"auth/anything":       {"tools/list", `tools/call test-tool{}`},
		"http-custom-headers": {"tools/list", `tools/call routed{"region":"eu"}eu`},
		"elicitation-sep1034-client-defaults": {"tools/list", `tools/call test_client_elicitation_defaults{}`,
			`tools/call test_client_elicitation_defaults{}{"f":{"content":{"ok":true,"n":7},"action":"accept"},"s":{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"none","stopReason":"endTurn"},"r":{"roots":[]}}`},
		"json-schema-2020-12-preservation": {"tools/list", `tools/call json_schema_echo{"schema":{"type":"object","$defs":{"a":{"type":"string"}}}}`},
		"sep-2322-client-request-state":    {`tools/call test_mrtr_echo_state{}`, `tools/call test_mrtr_no_state{}`, `tools/call test_mrtr_unrelated{}`, `tools/call test_mrtr_no_result_type{}`},
		"http-standard-headers":            {"tools/list", `tools/call add_numbers{}`, "resources/list", "resources/read test://1", "prompts/list", "prompts/get p1"},
		"http-invalid-tool-headers": {"tools/list", `tools/call add_numbers{"region":"us-west1"}`, `tools/call test_client_elicitation_defaults{"region":"us-west1"}`,
			`tools/call test_reconnection{"region":"us-west1"}`, `tools/call json_schema_2020_12_tool{"region":"us-west1"}`, `tools/call routed{"region":"us-west1"}us-west1`},
	} {
		t.Run(scenario, func(t *testing.T) {
			s := &suite{}
			ts := httptest.NewServer(s)
			defer ts.Close()
			var changed bool
			err := Run(t.Context(), Options{Scenario: scenario, URL: ts.URL, Context: json.RawMessage(`{"toolCalls":[{"name":"routed","arguments":{"region":"eu"}}]}`),
				HTTP: func(*mcpclient.HTTPOptions) { changed = true }})
			if err != nil || !changed {
				t.Errorf("Run: %v, options seen %v", err, changed)
			}
			got := s.asked[1:] // after server/discover
			if scenario == "http-invalid-tool-headers" {
				got = slices.DeleteFunc(got, func(a string) bool { return strings.Contains(a, `{"f":`) })
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestRunFails(t *testing.T) {
	for name, o := range map[string]Options{
		"unknown scenario": {Scenario: "no-such"},
		"no server":        {Scenario: "initialize", URL: "http://127.0.0.1:1"},
	} {
		if err := Run(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, scenario := range []string{"tools_call", "json-schema-2020-12-preservation", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers", "auth/x"} {
		ts := httptest.NewServer(&suite{fail: "tools/list"})
		if err := Run(t.Context(), Options{Scenario: scenario, URL: ts.URL}); err == nil {
			t.Errorf("%s: no error though the list is refused", scenario)
		}
		ts.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, Options{Scenario: "sep-2322-client-request-state", URL: "http://127.0.0.1:1"}); err == nil {
		t.Error("no error though cancelled")
	}
	if _, err := answer(ctx, "no/such", nil); err == nil {
		t.Error("an unknown question was answered")
	}
}
