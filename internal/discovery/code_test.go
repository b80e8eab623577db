package discovery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/codemode"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/script/scripttest"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// engine is shared by all tests, because compiling it is slow.
var engine = codemode.NewEngine()

// runScript runs a script in the code view and returns the texts of its
// result.
func runScript(t *testing.T, c *mcpclient.Client, code string) (texts []string, isError bool) {
	t.Helper()
	raw, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: marshal(map[string]any{"name": "run_code", "arguments": map[string]string{"code": code}})})
	if err != nil {
		t.Fatal(err)
	}
	for block := range rawjson.Elements(rawjson.Field(raw, "content")) {
		texts = append(texts, rawjson.FieldString(block, "text"))
	}
	return texts, mcp.ResultIsError(raw)
}

// typedTool has an output schema.
const typedTool = `{"name":"create-issue","description":"Create an issue.","inputSchema":{"type":"object","properties":{"repo":{"type":"string","description":"owner/name"},"labels":{"type":"array","items":{"enum":["bug","idea"]}}},"required":["repo"]},"outputSchema":{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}}`

func TestCodeModeHasTwoTools(t *testing.T) {
	scripttest.NeedEngine(t)
	r := newFixture(t, map[string]*testServer{"git-hub": newTestServer(typedTool), "fs": newTestServer(anyTool("read"))})
	for _, version := range versions {
		c := r.client(version, View{Mode: CodeMode})
		list, err := c.Do(ctxFor(t), tool.Request{Method: "tools/list", Params: json.RawMessage(`{}`)})
		if err != nil || strings.Count(string(list), `"inputSchema"`) != 2 {
			t.Fatalf("%s: %s, %v", version, list, err)
		}
		found, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"search_tools","arguments":{"query":"create an issue"}}`)})
		if err != nil || !strings.Contains(string(found), `(args: {repo: string; labels?: (\\\"bug\\\" | \\\"idea\\\")[]}): Promise<{number: number}>`) {
			t.Errorf("%s: %s, %v", version, found, err)
		}
		if _, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"execute_tool","arguments":{"server":"fs","tool":"read"}}`)}); err == nil {
			t.Error("code mode has execute_tool")
		}
	}
	meta := r.client(mcp.Version20251125, View{Mode: MetaMode})
	if _, err := meta.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"run_code","arguments":{"code":"return 1"}}`)}); err == nil {
		t.Error("the meta view has run_code without discovery.code")
	}
	cfg := DefaultConfig()
	cfg.Code = true
	r.SetConfig(cfg)
	if texts, _ := runScript(t, meta, `return 1`); texts[0] != "1" {
		t.Errorf("%q", texts)
	}
}

func TestScriptsCallTools(t *testing.T) {
	scripttest.NeedEngine(t)
	r := newFixture(t, map[string]*testServer{
		"git-hub": newTestServer(typedTool), "fs": newTestServer(anyTool("read"), anyTool("refuse"), anyTool("picture"), anyTool("secret")), "ask": newTestServer(anyTool("ask")),
	}, func(r *fixture, _ *[]upstream.Config) {
		off := false
		r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"fs:secret"}, Enabled: &off}}}, nil)
	})
	c := r.client(mcp.Version20251125, View{Mode: CodeMode})
	for name, tt := range map[string]struct{ code, want string }{
		"by name":           {`return await tools.call("fs:read", {a: 1})`, `read {"a":1}`},
		"as a function":     {`return await tools.fs.read({a: 1})`, `read {"a":1}`},
		"as identifiers":    {`return await tools.git_hub.create_issue({repo: "a/b"})`, `create-issue {"repo":"a/b"}`},
		"structured":        {`return (await tools.fs.picture()).a`, `1.5`},
		"in parallel":       {`return (await Promise.all([1, 2, 3].map(n => tools.fs.read({n})))).join()`, `read {"n":1},read {"n":2},read {"n":3}`},
		"search":            {`return (await tools.search("create an issue"))[0].name`, `git-hub:create-issue`},
		"describe":          {`return await tools.describe(["git-hub:create-issue"])`, "/** Create an issue. */\ntools[\"git-hub\"][\"create-issue\"](args: {/** owner/name */ repo: string; labels?: (\"bug\" | \"idea\")[]}): Promise<{number: number}>\n"},
		"an upstream error": {`try { await tools.fs.refuse() } catch (e) { return e.code + " " + e.message }`, `UPSTREAM_ERROR fs answered with an error: refused`},
		"no such tool":      {`try { await tools.fs.raed() } catch (e) { return e.code + " " + e.details.nearest }`, `TOOL_NOT_FOUND fs:read`},
		"bad arguments":     {`try { await tools.call("git-hub:create-issue", {}) } catch (e) { return e.code }`, `INVALID_ARGUMENTS`},
		"a disabled tool":   {`try { await tools.fs.secret() } catch (e) { return e.code }`, `TOOL_DISABLED`},
		"nothing":           {`;`, `null (the script returned nothing; end it with return)`},
		"awaiting tools":    {`await tools; await tools.fs; return 1`, `1`},
		"storing":           {`store.set("k", {n: 1}); return [store.get("k").n, store.get("none") ?? "none", store.keys()]`, `[1,"none",["k"]]`},
		"stored before":     {`store.set("k", 5); return store.get("k")`, `5`},
	} {
		t.Run(name, func(t *testing.T) {
			if texts, isError := runScript(t, c, tt.code); isError || texts[0] != tt.want {
				t.Errorf("%t %q, want %q", isError, texts, tt.want)
			}
		})
	}
	if texts, _ := runScript(t, c, `console.log("a", {b: 1}); return 2`); len(texts) != 2 || texts[0] != "2" || texts[1] != "console.log:\na {\"b\":1}" {
		t.Errorf("%q", texts)
	}
	texts, isError := runScript(t, c, "const x = 1\nawait tools.fs.refuse()")
	if !isError || !strings.Contains(texts[0], `"cause":"UPSTREAM_ERROR"`) || !strings.Contains(texts[0], `"script":"SCRIPT_ERROR"`) {
		t.Errorf("%q", texts)
	}
}

// Each call of a script has a record whose parent is the script's record.
func TestCallsOfScriptsAreRecorded(t *testing.T) {
	scripttest.NeedEngine(t)
	r := newFixture(t, map[string]*testServer{"fs": newTestServer(anyTool("read"))})
	c := r.client(mcp.Version20251125, View{Mode: CodeMode})
	runScript(t, c, `await tools.fs.read(); await tools.fs.read(); return 1`)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) != 3 {
		t.Fatalf("%d records", len(r.calls))
	}
	run := r.calls[2]
	if run.Server != codemode.Server || run.Tool != codemode.Tool || run.Status != "ok" || !strings.Contains(string(run.Arguments), "tools.fs.read") {
		t.Errorf("%+v", run)
	}
	for _, inner := range r.calls[:2] {
		if inner.Parent != run.ID || inner.Tool != "read" || inner.Face != "discovery" {
			t.Errorf("%+v", inner)
		}
	}
}

func TestScriptsHaveTheRightsOfTheirCaller(t *testing.T) {
	scripttest.NeedEngine(t)
	r := newFixture(t, map[string]*testServer{"fs": newTestServer(anyTool("read")), "hidden": newTestServer(anyTool("see"))})
	c := r.clientAs(tool.Caller{ID: "key:x", Servers: []string{"fs"}}, mcp.Version20251125, View{Mode: CodeMode})
	texts, _ := runScript(t, c, `const out = []
		for (const f of [() => tools.hidden.see(), () => tools.describe("hidden:see"), () => tools.call("see")]) try { out.push(await f()) } catch (e) { out.push(e.code) }
		out.push((await tools.search("see read")).map(t => t.name))
		store.set("mine", 1)
		return out`)
	if texts[0] != `["SERVER_NOT_FOUND","SERVER_NOT_FOUND","TOOL_NOT_FOUND",["fs:read"]]` {
		t.Errorf("%q", texts)
	}
	if texts, _ := runScript(t, r.client(mcp.Version20251125, View{Mode: CodeMode}), `return store.keys()`); texts[0] != "[]" {
		t.Errorf("another caller sees %q", texts)
	}
}

// A question of a tool reaches the user of the client.
func TestToolsOfScriptsAskThePerson(t *testing.T) {
	scripttest.NeedEngine(t)
	r := newFixture(t, map[string]*testServer{"ask": newTestServer(anyTool("ask"))})
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		var notes []string
		c := r.client(version, View{Mode: CodeMode}, func(o *mcpclient.Options) { o.Capabilities = mcpclient.Capabilities{ElicitationForm: true} })
		raw, err := c.Do(ctxFor(t), tool.Request{
			Method:   "tools/call",
			Params:   json.RawMessage(`{"name":"run_code","arguments":{"code":"const key = '` + version + `'; store.set(key, (store.get(key) ?? 0) + 1); return JSON.stringify(await tools.ask.ask()) + store.get(key) + 'x'"},"_meta":{"progressToken":7}}`),
			Exchange: answering(&notes),
		})
		if err != nil || mcp.ResultIsError(raw) || !strings.Contains(string(raw), `accept`) || !strings.Contains(string(raw), `}1x`) {
			t.Errorf("%s: %s, %v", version, raw, err)
		}
		if !strings.Contains(fmt.Sprint(notes), "progress 1") {
			t.Errorf("%s: no progress: %q", version, notes)
		}
	}
}

// A caller whose key, rule or profile excludes junctor:run_code gets the
// meta-tools in code mode and cannot run scripts.
func TestScriptsCanBeWithheld(t *testing.T) {
	scripttest.NeedEngine(t)
	r := newFixture(t, map[string]*testServer{"fs": newTestServer(anyTool("read"))})
	cfg := DefaultConfig()
	cfg.Code = true
	r.SetConfig(cfg)
	for name, tt := range map[string]struct {
		caller tool.Caller
		may    bool
	}{
		"no limits":        {tool.Caller{ID: "a"}, true},
		"limited":          {tool.Caller{ID: "b", Servers: []string{"fs"}, Tools: []string{"fs:*", "!fs:write"}}, true},
		"excluded":         {tool.Caller{ID: "c", Tools: []string{"*", "!junctor:run_code"}}, false},
		"one of the rules": {tool.Caller{ID: "d", Grants: []tool.Grant{{Tools: []string{"*", "!junctor:*"}}, {}}}, true},
		"all rules":        {tool.Caller{ID: "e", Grants: []tool.Grant{{Tools: []string{"*", "!junctor:*"}}}}, false},
		"no profile":       {tool.Caller{ID: "f", Profiles: tool.Profiles{tool.UnknownProfile("gone")}}, false},
	} {
		for _, v := range []*metaView{{face: r.Face}, {face: r.Face, code: true}} {
			serve := func(method, params string) string {
				got, err := v.Serve(ctxFor(t), &mcpserver.Request{Method: method, Params: json.RawMessage(params), Protocol: mcp.Version20251125, Caller: tt.caller})
				if err != nil {
					return err.Error()
				}
				return string(got)
			}
			if list := serve("tools/list", `{}`); strings.Contains(list, "run_code") != tt.may || !tt.may && !strings.Contains(list, "execute_tool") {
				t.Errorf("%s, code mode %t: %s", name, v.code, list)
			}
			if got := serve("tools/call", `{"name":"run_code","arguments":{"code":"return 40 + 2"}}`); strings.Contains(got, `"42"`) != tt.may {
				t.Errorf("%s, code mode %t: %s", name, v.code, got)
			}
		}
		if _, err := r.Face.opts.Scripts.Run(ctxFor(t), codemode.Request{Code: "return 1", Face: "tools", Caller: tt.caller}); (err == nil) != tt.may || err != nil && tool.KindOf(err) != tool.Denied {
			t.Errorf("%s: %v", name, err)
		}
	}
}
