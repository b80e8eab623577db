package upstream_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

// toolSetOf connects to a server with this script and returns its tools.
func toolSetOf(t *testing.T, script upstreamtest.Script) (upstream.ToolSet, upstream.Status) {
	t.Helper()
	r, _ := newInside(t, script, func(c *upstream.Config, _ *upstream.Options) { c.Description = "for tests" })
	r.run()
	st := r.state("x", upstream.Connected)
	return r.awaitTools("x", 1), st
}

func raws(texts ...string) []json.RawMessage {
	list := make([]json.RawMessage, len(texts))
	for i, s := range texts {
		list[i] = json.RawMessage(s)
	}
	return list
}

func numbered(n int) []json.RawMessage {
	list := make([]json.RawMessage, n)
	for i := range n {
		list[i] = upstreamtest.Tool(fmt.Sprintf("tool-%d", i), "does something. And more.")
	}
	return list
}

func TestInvalidDefinitionsDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	object := `"inputSchema":{"type":"object"}`
	set, st := toolSetOf(t, upstreamtest.Script{Tools: raws(
		`{"name":"good","x-unknown":12345678901234567890,`+object+`}`,
		`{"name":"schema is text","inputSchema":"object"}`,
		`{"name":"no schema"}`,
		`{"description":"no name",`+object+`}`,
		`{"name":42,`+object+`}`,
		`"not even an object"`,
		`{"name":"good","description":"again",`+object+`}`,
		`{"name":"`+strings.Repeat("n", 300)+`",`+object+`}`,
		`{"name":"big","description":"`+strings.Repeat("d", 1<<20)+`",`+object+`}`,
		`{"name":"deep","inputSchema":{"type":"object","properties":`+strings.Repeat(`{"a":`, 300)+`1`+strings.Repeat(`}`, 300)+`}}`,
		`{"name":"deeper","inputSchema":{"type":"object","properties":`+strings.Repeat(`{"a":`, 3000)+`1`+strings.Repeat(`}`, 3000)+`}}`,
		`{"name":"fine",`+object+`}`,
	)})
	var names []string
	for _, d := range set.Tools {
		names = append(names, d.Name.String())
	}
	if got, want := strings.Join(names, " "), "x:good x:fine"; got != want {
		t.Errorf("offered: %s, want %s", got, want)
	}
	contains(t, "the raw definition", string(set.Tools[0].Raw), `"x-unknown":12345678901234567890`)
	if len(set.Problems) != 10 || len(st.Problems) != 10 || st.Tools != 2 {
		t.Errorf("%d tools, problems %q", st.Tools, st.Problems)
	}
	contains(t, "Problems", strings.Join(st.Problems, "\n"), `tool "schema is text": inputSchema is not an object`, "without a name",
		`"good" is listed twice`, "more than 256 characters", "more than 1048576",
		`tool "deep" is left out: its definition is nested deeper than 253 levels`)
}

func TestManyProblemsAreCounted(t *testing.T) {
	bad := make([]json.RawMessage, 100)
	for i := range bad {
		bad[i] = json.RawMessage(`{"name":"x"}`)
	}
	_, st := toolSetOf(t, upstreamtest.Script{Tools: bad})
	if n := len(st.Problems); n != 21 || st.Problems[20] != "and 80 more" {
		t.Errorf("%d problems, the last: %q", n, st.Problems[n-1])
	}
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script  upstreamtest.Script
		tools   int
		problem string
	}{
		"pages":            {upstreamtest.Script{Tools: numbered(250), PageSize: 7}, 250, ""},
		"endless":          {upstreamtest.Script{Tools: numbered(1), EndlessPages: true}, 1, "more than 1000 pages"},
		"too many":         {upstreamtest.Script{Tools: numbered(10_001)}, 10_000, "only the first 10000 tools"},
		"none":             {upstreamtest.Script{NoTools: true}, 0, ""},
		"an error instead": {upstreamtest.Script{ToolsError: "database is locked"}, 0, "tools/list: database is locked"},
	} {
		t.Run(name, func(t *testing.T) {
			set, st := toolSetOf(t, tt.script)
			if len(set.Tools) != tt.tools {
				t.Errorf("%d tools, want %d", len(set.Tools), tt.tools)
			}
			if got := strings.Join(st.Problems, "\n"); tt.problem == "" && got != "" || !strings.Contains(got, tt.problem) {
				t.Errorf("problems %q, want %q", got, tt.problem)
			}
		})
	}
}

func TestGuidance(t *testing.T) {
	message := func(role, content string) json.RawMessage {
		return json.RawMessage(`{"messages":[{"role":"` + role + `","content":` + content + `}]}`)
	}
	text := `{"type":"text","text":"from the prompt"}`
	for name, tt := range map[string]struct {
		script upstreamtest.Script
		source tool.GuidanceSource
		want   string
	}{
		"prompt":               {upstreamtest.Script{Guidance: " from the prompt\n", Instructions: "read me"}, tool.FromPrompt, "from the prompt"},
		"two messages":         {upstreamtest.Script{GuidanceRaw: json.RawMessage(`{"messages":[{"role":"user","content":` + text + `},{"role":"user","content":` + text + `}]}`), Instructions: "read me"}, tool.FromInstructions, "read me"},
		"of the assistant":     {upstreamtest.Script{GuidanceRaw: message("assistant", text), Instructions: "read me"}, tool.FromInstructions, "read me"},
		"an image":             {upstreamtest.Script{GuidanceRaw: message("user", `{"type":"image","data":"","mimeType":"image/png"}`), Instructions: "read me"}, tool.FromInstructions, "read me"},
		"no messages":          {upstreamtest.Script{GuidanceRaw: json.RawMessage(`{}`), Instructions: "read me"}, tool.FromInstructions, "read me"},
		"instructions":         {upstreamtest.Script{Instructions: "read me"}, tool.FromInstructions, "read me"},
		"generated":            {upstreamtest.Script{Tools: numbered(2)}, tool.Generated, "Tools of x (for tests):\n- tool-0: does something\n- tool-1: does something"},
		"nothing to say":       {upstreamtest.Script{NoTools: true}, tool.Generated, ""},
		"a book is shortened":  {upstreamtest.Script{Instructions: strings.Repeat("word ", 20_000)}, tool.FromInstructions, ""},
		"a hundred tools more": {upstreamtest.Script{Tools: numbered(150)}, tool.Generated, ""},
	} {
		t.Run(name, func(t *testing.T) {
			set, _ := toolSetOf(t, tt.script)
			if set.Guidance.Source != tt.source || tt.want != "" && set.Guidance.Text != tt.want {
				t.Errorf("guidance %q from %s, want %q from %s", set.Guidance.Text, set.Guidance.Source, tt.want, tt.source)
			}
			if len(set.Guidance.Text) > 64<<10 {
				t.Errorf("guidance of %d bytes", len(set.Guidance.Text))
			}
			if strings.HasPrefix(name, "a hundred") {
				contains(t, "guidance", set.Guidance.Text, "- tool-99", "… and 50 more")
			}
		})
	}
}

func TestToolsWithInvalidHeadersAreOmittedOverHTTP(t *testing.T) {
	web := upstreamtest.Listen(t, upstreamtest.Script{Tools: []json.RawMessage{
		json.RawMessage(`{"name":"good","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`),
		json.RawMessage(`{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Not A Token"}}}}`),
	}})
	r := newFixture(t, upstream.Options{}, web.Config("x")).run()
	st := r.state("x", upstream.Connected)
	if set := r.awaitTools("x", 1); len(set.Tools) != 1 || set.Tools[0].Name.Tool != "good" {
		t.Errorf("listed %v", set.Tools)
	}
	if len(st.Problems) != 1 || !strings.Contains(st.Problems[0], `"bad" is left out`) {
		t.Errorf("problems = %q", st.Problems)
	}
}

func TestStatusIsRedacted(t *testing.T) {
	quits := upstreamtest.Stdio(t, "x", upstreamtest.Script{Exit: 7, Stderr: []string{"token hunter2 refused"}})
	r := newFixture(t, upstream.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }}, quits).run()
	st := r.state("x", upstream.Disconnected)
	if all := fmt.Sprint(st.Reason, st.LastFailure, st.Stderr); strings.Contains(all, "hunter2") || !strings.Contains(all, "[redacted]") {
		t.Errorf("status says %s", all)
	}
}

// The stderr of a program is read and redacted only when it is shown, not by
// calls.
func TestStatusWithoutStderr(t *testing.T) {
	var redacted atomic.Int64
	chatty := upstreamtest.Stdio(t, "x", upstreamtest.Script{Exit: 7, Stderr: []string{"token hunter2 refused"}})
	r := newFixture(t, upstream.Options{Redact: func(s string) string {
		if strings.Contains(s, "hunter2") {
			redacted.Add(1)
		}
		return "[redacted]"
	}}, chatty).run()
	r.state("x", upstream.Disconnected)
	before := redacted.Load()
	if st, ok := r.StatusOf("x"); !ok || len(st.Stderr) != 0 || st.Reason != "[redacted]" {
		t.Errorf("StatusOf = %+v, %t; want no stderr and a redacted reason", st, ok)
	}
	if list := r.Status(); len(list) != 1 || len(list[0].Stderr) != 0 {
		t.Errorf("Status = %+v; want no stderr", list)
	}
	if !r.Has("x") || r.Has("y") || len(r.Connecting()) != 0 {
		t.Errorf("Has(x) = %t, Has(y) = %t, Connecting() = %v", r.Has("x"), r.Has("y"), r.Connecting())
	}
	if n := redacted.Load() - before; n != 0 {
		t.Errorf("%d lines of stderr were redacted by calls that do not show them", n)
	}
	if st, _ := r.Diagnose("x"); len(st.Stderr) != 1 || st.Stderr[0] != "[redacted]" {
		t.Errorf("Diagnose shows %q", st.Stderr)
	}
}
