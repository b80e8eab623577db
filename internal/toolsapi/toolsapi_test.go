package toolsapi

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"junctor/internal/listing"
	"junctor/internal/provider"
	"junctor/internal/search"
	"junctor/internal/tool"
)

func names(t *testing.T, body []byte) []string {
	t.Helper()
	var list struct {
		Tools []struct{ Name, Server string }
	}
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	var names []string
	for _, tl := range list.Tools {
		names = append(names, tl.Server+":"+tl.Name)
	}
	return names
}

func TestListTools(t *testing.T) {
	ts := standard(t)
	for name, tt := range map[string]struct {
		query, caller string
		want          string
	}{
		"all":                   {"", "", "files:read.file files:list files:fail files:broken web:fetch web:list web:picture web:refuse"},
		"one server":            {"?server=web", "", "web:fetch web:list web:picture web:refuse"},
		"two servers":           {"?server=web,files&limit=3", "", "files:read.file files:list files:fail"},
		"one tool":              {"?server=web&tool=list", "", "web:list"},
		"tools of one name":     {"?tool=list", "", "files:list web:list"},
		"by tag":                {"?tags=disk", "", "files:read.file files:list files:fail files:broken"},
		"by another tag":        {"?tag=none", "", ""},
		"by words":              {"?query=bookmarks&limit=1", "", "web:list"},
		"by words in a server":  {"?query=list&server=files&limit=1", "", "files:list"},
		"limited caller":        {"", "limited", "web:fetch web:list web:picture web:refuse"},
		"limited caller, words": {"?query=read+file", "limited", ""},
	} {
		t.Run(name, func(t *testing.T) {
			res := get(t, ts.URL+"/tools"+tt.query, "X-Caller", tt.caller)
			got := strings.Join(names(t, res.body), " ")
			if name == "limited caller, words" {
				if strings.Contains(got, "files:") {
					t.Errorf("got %s", got)
				}
				return
			}
			if res.status != 200 || got != tt.want {
				t.Errorf("%d: got %s\nwant %s", res.status, got, tt.want)
			}
		})
	}
	get(t, ts.URL+"/tools?server=files").has(t, `"x-unknown":[12345678901234567890],"server":"files"}`)
}

func TestToolsInProviderFormats(t *testing.T) {
	ts := standard(t)
	read := provider.LegalName(tool.Name{Server: "files", Tool: "read.file"})
	for name, start := range map[string]string{
		"gemini": `{"function_declarations":[{"name":"` + read + `"`, "openai": `{"tools":[{"type":"function","function":{"name":"` + read + `"`,
		"xai": `{"tools":[{"type":"function","function":{`, "openai-responses": `{"tools":[{"type":"function","name":`,
		"anthropic": `{"tools":[{"name":"` + read + `"`, "ollama": `{"tools":[{"type":"function","function":{`, "bedrock": `{"toolConfig":{"tools":[{"toolSpec":{"name":"` + read + `"`,
	} {
		res := get(t, ts.URL+"/tools/"+name)
		if res.status != 200 || !strings.HasPrefix(string(res.body), start) || !json.Valid(res.body) {
			t.Errorf("%s: %d %s", name, res.status, res.body)
		}
		if strings.Contains(string(res.body), "hidden") {
			t.Errorf("%s shows a disabled tool", name)
		}
		res.has(t, `"code":"left_out"`, `files:broken`)
	}
	get(t, ts.URL+"/tools/gemini?schema=openapi&server=files").has(t, `"type":"OBJECT"`)
	get(t, ts.URL+"/tools/openai?strict=true&server=web").has(t, `"strict":true`)
	get(t, ts.URL+"/tools/gemini?server=web").has(t, `"warnings":[{"code":"lowered","tool":"web:fetch"`)
	get(t, ts.URL+"/tools/openai?limit=1").has(t, `"code":"limit"`, `"tools":["files:list"`)
	get(t, ts.URL+"/tools/claude?server=web&detail=concise").has(t, `"input_schema"`)
	get(t, ts.URL+"/tools/openai?servr=web").has(t, `"code":"ignored"`, `unknown parameter \"servr\"; the parameters are server,`)
	get(t, ts.URL+"/tools/openai?tags=unknown").has(t, `{"tools":[],"warnings":[{"code":"none"`, "omit the list")
	get(t, ts.URL+"/tools/openai?query=list&limit=101").has(t, `"code":"limit"`, "at most 100 tools")
	if res := get(t, ts.URL+"/tools/anthropic?server=web&tool=list&limit=100&query=list&detail=full"); strings.Contains(string(res.body), "warnings") {
		t.Errorf("a request without fault is warned about: %s", res.body)
	}
	if res := get(t, ts.URL+"/tools/openai", "X-Caller", "limited"); strings.Contains(string(res.body), "files") {
		t.Errorf("a limited caller sees %s", res.body)
	}
}

func TestInvalidRequests(t *testing.T) {
	ts := standard(t)
	for name, tt := range map[string]struct {
		method, path, body, caller string
		status                     int
		code, says                 string
	}{
		"unknown provider":          {"GET", "/tools/acme", "", "", 404, "METHOD_NOT_FOUND", "use one of gemini"},
		"unknown provider context":  {"GET", "/tools/acme/context", "", "", 404, "METHOD_NOT_FOUND", "use one of gemini"},
		"unknown server":            {"GET", "/tools?server=filez", "", "", 404, "SERVER_NOT_FOUND", "files"},
		"unknown server, declared":  {"GET", "/tools/openai?server=filez", "", "", 404, "SERVER_NOT_FOUND", "files"},
		"unknown server, context":   {"GET", "/tools/openai/context?server=filez", "", "", 404, "SERVER_NOT_FOUND", "files"},
		"server of others":          {"GET", "/tools?server=files", "", "limited", 404, "SERVER_NOT_FOUND", "files"},
		"bad detail":                {"GET", "/tools/openai?detail=huge", "", "", 400, "INVALID_ARGUMENTS", "concise"},
		"bad detail, context":       {"GET", "/tools/openai/context?detail=huge", "", "", 400, "INVALID_ARGUMENTS", "concise"},
		"bad limit":                 {"GET", "/tools?limit=0", "", "", 400, "INVALID_ARGUMENTS", "limit"},
		"bad strict":                {"GET", "/tools/openai?strict=maybe", "", "", 400, "INVALID_ARGUMENTS", "strict"},
		"strict elsewhere":          {"GET", "/tools/gemini?strict=true", "", "", 400, "INVALID_REQUEST", "OpenAI"},
		"bad schema":                {"GET", "/tools/gemini?schema=xml", "", "", 400, "INVALID_REQUEST", "openapi"},
		"bad status":                {"GET", "/logs?status=odd", "", "", 400, "INVALID_ARGUMENTS", "failed"},
		"bad since":                 {"GET", "/logs?since=yesterday", "", "", 400, "INVALID_ARGUMENTS", "2026"},
		"bad after":                 {"GET", "/logs?after=x", "", "", 400, "INVALID_ARGUMENTS", "seq"},
		"bad log limit":             {"GET", "/logs?limit=x", "", "", 400, "INVALID_ARGUMENTS", "limit"},
		"wrong method":              {"GET", "/execute", "", "", 405, "INVALID_REQUEST", "use POST"},
		"wrong method on a list":    {"POST", "/tools", "{}", "", 405, "INVALID_REQUEST", "use GET"},
		"unknown path":              {"GET", "/tools/openai/nothing", "", "", 404, "METHOD_NOT_FOUND", "/openapi.json"},
		"empty body":                {"POST", "/execute", "", "", 400, "INVALID_REQUEST", "empty"},
		"not UTF-8":                 {"POST", "/execute", "{\"provider\":\"openai\",\"tool_call\":{\"name\":\"\xff\"}}", "", 400, "PARSE_ERROR", "UTF-8"},
		"call_tool, not UTF-8":      {"POST", "/call_tool", "{\"tool\":\"echo\",\"arguments\":{\"a\":\"\xff\"}}", "", 400, "PARSE_ERROR", "UTF-8"},
		"broken body":               {"POST", "/execute", "{", "", 400, "PARSE_ERROR", "not JSON"},
		"body of another kind":      {"POST", "/execute", `{"provider":5}`, "", 400, "INVALID_REQUEST", "provider must be a string; it is JSON of the type number"},
		"wait as text":              {"POST", "/execute", `{"call":{},"wait":"false"}`, "", 400, "INVALID_REQUEST", "wait must be true or false; it is JSON of the type string"},
		"body that is a list":       {"POST", "/execute", `[]`, "", 400, "INVALID_REQUEST", "must be a JSON object; it is JSON of the type array"},
		"no call":                   {"POST", "/execute", `{"provider":"openai"}`, "", 400, "INVALID_REQUEST", "call is missing"},
		"null call":                 {"POST", "/execute", `{"call":null}`, "", 400, "INVALID_REQUEST", "call is missing"},
		"oversized body":            {"POST", "/execute", `{"call":"` + strings.Repeat("x", maxBody) + `"}`, "", 413, "TOO_LARGE", "maxBodyBytes"},
		"ambiguous call":            {"POST", "/execute", `{"call":{"name":"list","arguments":"{}"}}`, "", 400, "INVALID_REQUEST", "name it in provider"},
		"wrong provider":            {"POST", "/execute", `{"provider":"gemini","call":{"type":"tool_use","id":"x","name":"web__fetch","input":{}}}`, "", 400, "INVALID_REQUEST", "one of anthropic"},
		"unknown provider named":    {"POST", "/execute", `{"provider":"acme","call":{"name":"x"}}`, "", 400, "INVALID_REQUEST", "use one of"},
		"call that is text":         {"POST", "/execute", `{"call":"text"}`, "", 400, "INVALID_REQUEST", "not an object"},
		"unknown tool":              {"POST", "/execute", `{"provider":"gemini","call":{"name":"web__fetsh","args":{}}}`, "", 404, "TOOL_NOT_FOUND", "web:fetch"},
		"tool in two servers":       {"POST", "/execute", `{"provider":"gemini","call":{"name":"list","args":{}}}`, "", 400, "INVALID_ARGUMENTS", "files:list"},
		"tool of others":            {"POST", "/execute", `{"provider":"gemini","call":{"name":"files__list","args":{}}}`, "limited", 404, "SERVER_NOT_FOUND", "no server named"},
		"disabled tool":             {"POST", "/execute", `{"provider":"gemini","call":{"name":"files__hidden","args":{}}}`, "", 403, "TOOL_DISABLED", "disabled"},
		"arguments that do not fit": {"POST", "/execute", `{"provider":"gemini","call":{"name":"read.file","args":{"lines":"many"}}}`, "", 400, "INVALID_ARGUMENTS", "path"},
		"arguments that are a list": {"POST", "/execute", `{"provider":"gemini","call":{"name":"read.file","args":[]}}`, "", 400, "INVALID_ARGUMENTS", "not a JSON object"},
		"arguments that are broken": {"POST", "/execute", `{"provider":"openai","call":{"id":"1","function":{"name":"web__fetch","arguments":"{\"url\":"}}}`, "", 400, "INVALID_ARGUMENTS", "not valid JSON"},
		"server that is not there":  {"POST", "/execute", `{"provider":"gemini","server":"nowhere","call":{"name":"x","args":{}}}`, "", 404, "SERVER_NOT_FOUND", "nowhere"},
		"upstream's refusal":        {"POST", "/execute", `{"provider":"gemini","call":{"name":"web__refuse","args":{}}}`, "", 502, "UPSTREAM_ERROR", "refused"},
		"call_tool without a tool":  {"POST", "/call_tool", `{"server":"web"}`, "", 400, "INVALID_REQUEST", "tool is missing"},
		"call_tool, broken":         {"POST", "/call_tool", `[`, "", 400, "PARSE_ERROR", "not JSON"},
		"call_tool, a list":         {"POST", "/call_tool", `{"server":"web","tool":"fetch","arguments":[1]}`, "", 400, "INVALID_ARGUMENTS", "object"},
		"call_tool, unknown":        {"POST", "/call_tool", `{"server":"web","tool":"nothing"}`, "", 404, "TOOL_NOT_FOUND", "nothing"},
		"no provider can be told":   {"POST", "/execute", `{"call":[{"name":"x"},5]}`, "", 400, "INVALID_REQUEST", "not an object"},
		"unknown provider of many":  {"POST", "/execute", `{"provider":"acme","call":[]}`, "", 400, "INVALID_REQUEST", "use one of"},
		"too many calls":            {"POST", "/execute", `{"call":[` + strings.TrimSuffix(strings.Repeat("{},", 129), ",") + `]}`, "", 400, "INVALID_REQUEST", "at most 128"},
	} {
		t.Run(name, func(t *testing.T) {
			res := request(t, tt.method, ts.URL+tt.path, tt.body, "X-Caller", tt.caller)
			if res.status != tt.status || res.code(t) != tt.code {
				t.Errorf("%d %s, want %d %s", res.status, res.body, tt.status, tt.code)
			}
			res.has(t, tt.says)
		})
	}
}

// TestHiddenToolsAreUnknown checks that a tool that the caller may not use is
// reported and recorded like one that does not exist, under each of its names.
func TestHiddenToolsAreUnknown(t *testing.T) {
	ts := standard(t)
	for _, tt := range []struct{ hidden, unknown, code string }{
		{"fail", "fial", "TOOL_NOT_FOUND"},
		{"files:fail", "files:fial", "SERVER_NOT_FOUND"},
		{"files__fail", "files__fial", "SERVER_NOT_FOUND"},
		{"files__fail", "filez__fail", "SERVER_NOT_FOUND"},
		{"__fail", "__fial", "TOOL_NOT_FOUND"},
	} {
		var answers [2]struct{ Code, Message string }
		for i, name := range []string{tt.hidden, tt.unknown} {
			res := post(t, ts.URL+"/execute", `{"provider":"gemini","call":{"name":"`+name+`","args":{}}}`, "X-Caller", "limited")
			if err := json.Unmarshal(res.body, &answers[i]); err != nil || res.status != 404 {
				t.Errorf("%s: %d %s", name, res.status, res.body)
			}
			answers[i].Message = strings.NewReplacer("fial", "fail", "filez", "files").Replace(answers[i].Message)
		}
		if answers[0] != answers[1] || answers[0].Code != tt.code {
			t.Errorf("%s: %+v\n%s: %+v\nwant %s for both", tt.hidden, answers[0], tt.unknown, answers[1], tt.code)
		}
	}
	var logged []struct{ Server, Tool string }
	res := get(t, ts.URL+"/logs", "X-Caller", "limited")
	if err := json.Unmarshal(res.body, &logged); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, l := range logged {
		if l.Tool == "fail" && l.Server == "" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d records of the call by the bare name without a server, want 1: %s", found, res.body)
	}
	// If both servers have the tool, the caller's is called.
	post(t, ts.URL+"/execute", `{"provider":"gemini","call":{"name":"list","args":{}}}`, "X-Caller", "limited").has(t, `"functionResponse"`)
}

func TestContext(t *testing.T) {
	ts := standard(t)
	res := get(t, ts.URL+"/tools/openai/context?server=files&detail=concise")
	want := "Parameters: * is required, ? optional; without a type, text.\n\n# files\n## disk\n- files__read_file_13377c4e(path*, lines?: integer, filter[x]?: integer, level?: 1|2): Read a file from disk\n"
	if res.status != 200 || !strings.HasPrefix(string(res.body), want) || res.header.Get("Content-Type") != "text/plain; charset=utf-8" || res.header.Get("X-Token-Estimate") == "" {
		t.Errorf("%d %v\n%s", res.status, res.header, res.body)
	}
	res = get(t, ts.URL+"/tools/openai/context")
	res.has(t, "Be kind.", "# web\n", "  - url (string, optional)")
	if strings.Contains(string(res.body), "Tools of web") {
		t.Errorf("the tools are listed twice: %s", res.body)
	}
	res = get(t, ts.URL+"/tools/gemini/context?query=picture&limit=1", "Accept", "application/json")
	res.has(t, `"provider":"gemini"`, `"tools":1`, `web__picture`, `"tokenEstimate":`)
	get(t, ts.URL+"/tools/gemini/context?limit=1", "Accept", "application/json").has(t, `"tools":1`)
}

func TestExecute(t *testing.T) {
	ts := standard(t)
	read := provider.LegalName(tool.Name{Server: "files", Tool: "read.file"})
	for name, tt := range map[string]struct {
		body, want string
	}{
		"openai": {
			`{"provider":"openai","call":{"id":"call_1","type":"function","function":{"name":"` + read + `","arguments":"{\"path\":\"a\",\"lines\":\"3\",\"level\":\"2\"}"}}}`,
			`{"role":"tool","tool_call_id":"call_1","content":"{\"path\":\"a\",\"lines\":3,\"level\":2}"}`,
		},
		"recognised": {
			`{"call":{"type":"tool_use","id":"toolu_1","name":"` + read + `","input":{"path":"a","filter_x__80b5e9bb":"7"}}}`,
			`{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"{\"path\":\"a\",\"filter[x]\":7}"}]}`,
		},
		"the seed's bare name": {
			`{"provider":"gemini","call":{"name":"list","args":{}},"server":"files"}`,
			`{"functionResponse":{"name":"list","response":{"output":{}}}}`,
		},
		"a unique bare name": {
			`{"provider":"gemini","call":{"name":"fetch"}}`,
			`{"functionResponse":{"name":"fetch","response":{"output":{}}}}`,
		},
		"a qualified name": {
			`{"provider":"ollama","call":{"function":{"name":"web:list","arguments":{}}}}`,
			`{"role":"tool","tool_name":"web:list","content":"{}"}`,
		},
		"a failed tool": {
			`{"call":{"toolUse":{"toolUseId":"t1","name":"files__fail","input":{}}}}`,
			`{"toolResult":{"toolUseId":"t1","content":[{"text":"it failed"}],"status":"error"}}`,
		},
		"an image": {
			`{"call":{"type":"function_call","call_id":"c","name":"web__picture","arguments":""}}`,
			`{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"auto"}]}`,
		},
		"parallel": {
			`{"provider":"xai","call":[{"id":"1","function":{"name":"web__list","arguments":"{}"}},{"id":"2","function":{"name":"nothing","arguments":"{}"}},{"id":"3","type":"tool_use"},{"id":"4","function":{"name":"files__fail","arguments":""}}]}`,
			`[{"role":"tool","tool_call_id":"1","content":"{}"},{"role":"tool","tool_call_id":"2","content":"Error: TOOL_NOT_FOUND: no tool named \"nothing\""},{"role":"tool","tool_call_id":"3","content":"Error: INVALID_REQUEST: the call is not in the form of xai; send the call object as its API returned it"},{"role":"tool","tool_call_id":"4","content":"Error: it failed"}]`,
		},
		"parallel, recognised, one unreadable": {
			`{"call":[{"odd":1,"call_id":"9"},{"functionCall":{"name":"web__list","args":{}}},{"toolUseId":"8"}]}`,
			`[{"functionResponse":{"id":"9","name":"","response":{"error":"INVALID_REQUEST: cannot tell which provider's call this is; name it in provider: one of gemini, openai, openai-responses, xai, anthropic, ollama, bedrock"}}},{"functionResponse":{"name":"web__list","response":{"output":{}}}},{"functionResponse":{"id":"8","name":"","response":{"error":"INVALID_REQUEST: the call looks like one of bedrock but has no name"}}}]`,
		},
		"none": {`{"call":[]}`, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			res := post(t, ts.URL+"/execute", tt.body)
			if got := strings.TrimSpace(string(res.body)); res.status != 200 || got != tt.want {
				t.Errorf("%d\ngot  %s\nwant %s", res.status, got, tt.want)
			}
		})
	}
}

func TestCallTool(t *testing.T) {
	ts := standard(t)
	for name, tt := range map[string]struct{ body, want string }{
		"object":    {`{"server":"web","tool":"fetch","arguments":{"url":"https://x"}}`, `{"result":{"content":[{"type":"text","text":"{\"url\":\"https://x\"}"}]}}`},
		"text":      {`{"server":"web","tool":"fetch","arguments":"{\"url\":\"https://x\"}"}`, `{"result":{"content":[{"type":"text","text":"{\"url\":\"https://x\"}"}]}}`},
		"nothing":   {`{"server":"web","tool":"list"}`, `{"result":{"content":[{"type":"text","text":"{}"}]}}`},
		"qualified": {`{"tool":"web:list"}`, `{"result":{"content":[{"type":"text","text":"{}"}]}}`},
		"untouched": {`{"tool":"picture"}`, `{"result":{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}],"big":12345678901234567890}}`},
		"failed":    {`{"tool":"fail"}`, `{"result":{"content":[{"type":"text","text":"it failed"}],"isError":true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			res := post(t, ts.URL+"/call_tool", tt.body)
			// The server uses the latest protocol version, which adds resultType
			// to results.
			if got := strings.Replace(strings.TrimSpace(string(res.body)), `"resultType":"complete",`, "", 1); res.status != 200 || got != tt.want {
				t.Errorf("%d\ngot  %s\nwant %s", res.status, got, tt.want)
			}
		})
	}
}

type failingSearch struct{}

func (failingSearch) Search(search.Query) ([]search.Hit, error) { return nil, errors.New("no index") }

func TestSearchErrorsAreInternal(t *testing.T) {
	_, ts := gateway(t, nil, func(_ *Options, l *listing.Options) { l.Search = failingSearch{} })
	for _, path := range []string{"/tools?query=x", "/tools/openai?query=x", "/tools/openai/context?query=x"} {
		if res := get(t, ts.URL+path); res.status != 500 || res.code(t) != "INTERNAL" {
			t.Errorf("%s: %d %s", path, res.status, res.body)
		}
	}
}
