package toolsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/listing"
	"junctor/internal/provider"
	"junctor/internal/rawjson"
	"junctor/internal/script/scripttest"
	"junctor/internal/tool"
	"junctor/internal/toolsapi/openapitest"
	"junctor/internal/upstream"
)

type openapiDoc struct {
	OpenAPI string
	Info    struct{ Version string }
	Paths   map[string]map[string]struct {
		Parameters []struct {
			Name, In string
		}
		RequestBody *struct {
			Content map[string]struct {
				Examples map[string]struct{ Value json.RawMessage }
			}
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct {
		Schemas map[string]struct{ Enum []string }
	}
}

// TestOpenAPI checks that the description has exactly the existing routes, and
// that every response matches it.
func TestOpenAPI(t *testing.T) {
	scripttest.NeedEngine(t)
	ts := standard(t)
	res := get(t, ts.URL+"/openapi.json")
	var doc openapiDoc
	if err := json.Unmarshal(res.body, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "1.2.3" {
		t.Errorf("openapi %s, version %s", doc.OpenAPI, doc.Info.Version)
	}
	described := 0
	for path, methods := range doc.Paths {
		if strings.HasPrefix(path, "/api/") {
			continue // other APIs; a test of package app generates their part
		}
		for method := range methods {
			described++
			found := false
			for _, r := range New(Options{}).routes() {
				found = found || r.path == path && strings.EqualFold(r.method, method)
			}
			if !found {
				t.Errorf("%s %s is described and not served", method, path)
			}
		}
	}
	if served := len(New(Options{}).routes()); served != described {
		t.Errorf("%d routes are served, %d described", served, described)
	}
	if got := fmt.Sprint(doc.Components.Schemas["Provider"].Enum); got != fmt.Sprint(provider.Providers()) {
		t.Errorf("providers %s, want %v", got, provider.Providers())
	}

	check, err := openapitest.New(res.body)
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	try := func(method, path, actual, body, accept string, status int) {
		t.Helper()
		res := request(t, method, ts.URL+actual, body, "Accept", accept)
		if res.status != status {
			t.Errorf("%s %s: %d, want %d: %s", method, actual, res.status, status, res.body)
			return
		}
		covered[fmt.Sprintf("%s %s %d", strings.ToLower(method), path, status)] = true
		if err := check.Check(method, actual, status, res.header, res.body); err != nil {
			t.Error(err)
		}
	}
	get := func(path, actual string, status int) {
		t.Helper()
		try("GET", path, actual, "", "application/json", status)
	}
	post := func(path, body string, status int) {
		t.Helper()
		try("POST", path, path, body, "application/json", status)
	}

	get("/tools", "/tools?server=files&tags=disk&query=file&limit=3", 200)
	get("/tools", "/tools?limit=x", 400)
	get("/tools", "/tools?server=none", 404)
	for _, p := range provider.Providers() {
		get("/tools/{provider}", "/tools/"+p+"?detail=concise&limit=2", 200)
		get("/tools/{provider}/context", "/tools/"+p+"/context?detail=full", 200)
	}
	get("/tools/{provider}", "/tools/gemini?schema=openapi", 200)
	get("/tools/{provider}", "/tools/openai?strict=true", 200)
	get("/tools/{provider}", "/tools/openai?tags=none&mistake=1", 200)
	get("/tools/{provider}", "/tools/openai?detail=x", 400)
	get("/tools/{provider}", "/tools/none", 404)
	get("/tools/{provider}/context", "/tools/openai/context?limit=x", 400)
	get("/tools/{provider}/context", "/tools/none/context", 404)
	try("GET", "/tools/{provider}/context", "/tools/openai/context", "", "text/plain", 200)
	for _, call := range []string{
		`{"provider":"openai","call":{"id":"1","function":{"name":"web__list","arguments":"{}"}}}`,
		`{"call":{"type":"function_call","call_id":"1","name":"web__list","arguments":"{}"}}`,
		`{"call":{"type":"tool_use","id":"1","name":"files__fail","input":{}}}`,
		`{"call":{"functionCall":{"name":"web__list","args":{}}}}`,
		`{"call":{"toolUseId":"1","name":"web__list","input":{}}}`,
		`{"call":{"function":{"name":"web__picture","arguments":{}}}}`,
		`{"provider":"ollama","call":[{"id":"x","function":{"name":"none","arguments":{}}}]}`,
	} {
		post("/execute", call, 200)
	}
	post("/execute", `{`, 400)
	post("/execute", `{"provider":"gemini","call":{"name":"none","args":{}}}`, 404)
	post("/execute", `{"provider":"gemini","call":{"name":"files__hidden","args":{}}}`, 403)
	post("/execute", `{"provider":"gemini","call":{"name":"web__refuse","args":{}}}`, 502)
	post("/execute", `{"call":"`+strings.Repeat("x", maxBody)+`"}`, 413)
	post("/call_tool", `{"server":"web","tool":"list","arguments":{}}`, 200)
	post("/call_tool", `{}`, 400)
	post("/call_tool", `{"tool":"none"}`, 404)
	post("/call_tool", `{"tool":"web:refuse"}`, 502)
	post("/run", `{"code":"return [await tools.web.list(), (await tools.search('list files')).length > 0]"}`, 200)
	post("/run", `{"code":"console.log('x'); await tools.web.refuse()"}`, 200)
	post("/run", `{"code":"return = 1"}`, 400)
	post("/run", `{}`, 400)
	get("/logs", "/logs?server=web&limit=5&since=2000-01-01T00:00:00Z", 200)
	get("/logs", "/logs", 200)
	get("/logs", "/logs?status=x", 400)
	get("/health", "/health", 200)
	get("/health/live", "/health/live", 200)
	get("/health/ready", "/health/ready", 200)
	get("/openapi.json", "/openapi.json", 200)
	for path, methods := range doc.Paths {
		if strings.HasPrefix(path, "/api/") {
			continue
		}
		for method, op := range methods {
			for status := range op.Responses {
				switch status { // the others require another state of the gateway; errors share one schema
				case "200", "400", "404":
					if !covered[method+" "+path+" "+status] {
						t.Errorf("%s %s %s was not tried", method, path, status)
					}
				}
			}
			if op.RequestBody != nil {
				for name, e := range op.RequestBody.Content["application/json"].Examples {
					if !json.Valid(e.Value) {
						t.Errorf("%s: example %s is not JSON", path, name)
					}
				}
			}
		}
	}
}

// noServers is a gateway whose catalogue is filled by the test.
type noServers struct{}

func (noServers) Status() []upstream.Status                 { return nil }
func (noServers) StatusOf(string) (upstream.Status, bool)   { return upstream.Status{}, false }
func (noServers) Connecting() []string                      { return nil }
func (noServers) Await(context.Context, ...string) []string { return nil }

func thousand(tb testing.TB) *API {
	tb.Helper()
	c := catalog.New(nil, nil)
	for s := range 20 {
		name := fmt.Sprintf("server%d", s)
		var defs []tool.Definition
		for i := range 50 {
			d, err := tool.ParseDefinition(name, json.RawMessage(definition(fmt.Sprintf("tool_%d", i), "Does something useful with the collection.", `{"type":"object","properties":{"query":{"type":"string","description":"What to look for."},"limit":{"type":"integer","minimum":1},"tags":{"type":"array","items":{"type":"string"}}},"required":["query"]}`)))
			if err != nil {
				tb.Fatal(err)
			}
			defs = append(defs, d)
		}
		c.Put(catalog.Server{Name: name}, defs)
	}
	return New(Options{Tools: listing.New(listing.Options{Catalog: c, Upstreams: noServers{}})})
}

// BenchmarkListing measures GET /tools/openai and /tools/anthropic for 1,000
// tools, warm, through the handler.
func BenchmarkListing(b *testing.B) {
	api := thousand(b)
	handler := handlerOf(api)
	ctx := tool.WithCaller(b.Context(), tool.Local)
	for _, name := range []string{"openai", "anthropic"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rec := httptest.NewRecorder()
				handler.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "/tools/"+name, nil))
				if rec.Code != 200 {
					b.Fatal(rec.Code)
				}
			}
		})
	}
}

// TestSchemasHaveAllFields checks that the schemas have the fields that the
// bodies have, including those that no other test produces.
func TestSchemasHaveAllFields(t *testing.T) {
	for path, body := range map[string]any{
		"Health": healthBody{}, "Health.properties.servers.items": serverHealth{}, "Probe": probeBody{},
		"Execute": executeBody{}, "CallTool": callToolBody{}, "LogEntry": logEntry{},
	} {
		properties := rawjson.Field([]byte(openapiJSON), append([]string{"components", "schemas"}, append(strings.Split(path, "."), "properties")...)...)
		var got, want []string
		for name := range rawjson.Members(properties) {
			got = append(got, name)
		}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(body)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			want = append(want, name)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the schema %s has %v, its body %v", path, got, want)
		}
	}
}
