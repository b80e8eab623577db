package discovery

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/script/scripttest"
	"junctor/internal/tool"
)

// step is one call of a task: a tool and its arguments.
type step struct{ server, tool, arguments string }

func steps(n int, server, name, format string) (list []step) {
	for i := range n {
		list = append(list, step{server, name, fmt.Sprintf(format, i)})
	}
	return list
}

// codeTasks are the tasks in docs/code-mode.md: the individual calls, and the
// script that makes them.
var codeTasks = []struct {
	name, query string
	steps       []step
	code, want  string
}{
	{"one call", "list issues", steps(1, "tracker", "issue_page", `{"page":%d}`),
		`return (await tools.tracker.issue_page({page: 0})).filter(i => i.comments > 11).map(i => i.number)`, `[12,25,38]`},
	{"filter ten pages", "list issues", steps(10, "tracker", "issue_page", `{"page":%d}`),
		`const pages = await Promise.all([...Array(10).keys()].map(page => tools.tracker.issue_page({page})))
const open = pages.flat().filter(i => i.state === "open" && i.author === "user3")
return {open: open.length, comments: open.reduce((n, i) => n + i.comments, 0)}`, `{"open":35,"comments":204}`},
	{"five calls in a row", "read a file", steps(5, "files", "read", `{"path":"part%d"}`),
		`let last = ""
for (let i = 0; i < 5; i++) last = await tools.files.read({path: "part" + i})
return last`, `read {"path":"part4"}`},
	{"thirty calls, three servers", "list issues, read a file, post a message",
		append(append(steps(10, "tracker", "issue_page", `{"page":%d}`), steps(10, "files", "read", `{"path":"%d.md"}`)...), steps(10, "chat", "post", `{"channel":"c%d"}`)...),
		`const ten = [...Array(10).keys()]
const issues = (await Promise.all(ten.map(page => tools.tracker.issue_page({page})))).flat()
const files = await Promise.all(ten.map(n => tools.files.read({path: n + ".md"})))
const posts = await Promise.all(ten.map(n => tools.chat.post({channel: "c" + n})))
return [issues.length, files.length, posts.length]`, `[500,10,10]`},
	{"copy with errors caught", "read a file, post a message", append(steps(6, "files", "read", `{"path":"%d"}`), steps(6, "chat", "post", `{"channel":"%d"}`)...),
		`let done = 0
for (let n = 0; n < 6; n++) try {
  await tools.chat.post({channel: String(n), text: await tools.files.read({path: String(n)})})
  done++
} catch (e) { console.log(e.code) }
return done`, `6`},
}

// TestTokensOfCodeMode counts the tokens that pass through a model for the
// same tasks in three modes: definitions, calls and results, each once. go
// test -v prints the table for docs/code-mode.md.
func TestTokensOfCodeMode(t *testing.T) {
	scripttest.NeedEngine(t)
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	count := func(raw []byte) int {
		n, err := codec.Count(string(raw))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	r := newFixture(t, codeServers())
	type cost struct{ tokens, trips int }
	ask := func(c *mcpclient.Client, method string, params json.RawMessage, to *cost) json.RawMessage {
		result, err := c.Do(ctxFor(t), tool.Request{Method: method, Params: params})
		if err != nil || mcp.ResultIsError(result) {
			t.Fatalf("%s %s: %s, %v", method, params, result, err)
		}
		if to.tokens += count(result); method == "tools/call" {
			to.tokens, to.trips = to.tokens+count(params), to.trips+1
		}
		return result
	}
	call := func(name string, arguments any) json.RawMessage {
		return marshal(map[string]any{"name": name, "arguments": arguments})
	}
	for _, task := range codeTasks {
		var meta, direct, code cost
		search := call("search_tools", map[string]any{"query": task.query, "limit": 3})
		c := r.client(mcp.Version20251125, View{Mode: MetaMode})
		ask(c, "tools/list", json.RawMessage(`{}`), &meta)
		ask(c, "tools/call", search, &meta)
		for _, s := range task.steps {
			ask(c, "tools/call", call("execute_tool", map[string]any{"server": s.server, "tool": s.tool, "arguments": json.RawMessage(s.arguments)}), &meta)
		}
		c = r.client(mcp.Version20251125, View{Mode: DirectMode})
		ask(c, "tools/list", json.RawMessage(`{}`), &direct)
		for _, s := range task.steps {
			ask(c, "tools/call", call(s.server+"__"+s.tool, json.RawMessage(s.arguments)), &direct)
		}
		c = r.client(mcp.Version20251125, View{Mode: CodeMode})
		ask(c, "tools/list", json.RawMessage(`{}`), &code)
		ask(c, "tools/call", search, &code)
		before := len(r.recorded())
		result := ask(c, "tools/call", call("run_code", map[string]string{"code": task.code}), &code)
		if made := len(r.recorded()) - before; made != len(task.steps)+1 {
			t.Errorf("%s: %d records for %d calls and a script", task.name, made, len(task.steps))
		}
		if !strings.Contains(string(result), string(marshal(task.want))) {
			t.Errorf("%s: %s, want %s", task.name, result, task.want)
		}
		if code.trips != 2 || len(task.steps) > 5 && code.tokens > meta.tokens {
			t.Errorf("%s: code %+v, meta %+v", task.name, code, meta)
		}
		t.Logf("| %s | %d | %d, %d | %d, %d | %d, %d |", task.name, len(task.steps), meta.tokens, meta.trips, direct.tokens, direct.trips, code.tokens, code.trips)
	}
}

// codeServers are three servers with twenty tools each.
func codeServers() map[string]*testServer {
	more := func(tools ...string) *testServer {
		for i := len(tools); i < 20; i++ {
			tools = append(tools, fmt.Sprintf(`{"name":"other_%d","description":"Does something else with an item, number %d of its kind.","inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"the id of the item"},"limit":{"type":"integer"},"verbose":{"type":"boolean"}},"required":["id"]}}`, i, i))
		}
		return newTestServer(tools...)
	}
	return map[string]*testServer{
		"tracker": more(`{"name":"issue_page","description":"List the issues of the project, 50 on a page.","inputSchema":{"type":"object","properties":{"page":{"type":"integer"}},"required":["page"]}}`),
		"files":   more(`{"name":"read","description":"Read a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`),
		"chat":    more(`{"name":"post","description":"Post a message to a channel.","inputSchema":{"type":"object","properties":{"channel":{"type":"string"},"text":{"type":"string"}},"required":["channel"]}}`),
	}
}

func (r *fixture) recorded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make([]string, len(r.calls))
	for i, c := range r.calls {
		ids[i] = c.ID
	}
	return ids
}

func TestManyScriptsAtOnce(t *testing.T) {
	scripttest.NeedEngine(t)
	r := newFixture(t, codeServers())
	c := r.client(mcp.Version20251125, View{Mode: CodeMode})
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			raw, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: marshal(map[string]any{"name": "run_code", "arguments": map[string]string{
				"code": fmt.Sprintf(`return (await Promise.all([...Array(10).keys()].map(n => tools.files.read({path: "%d-" + n})))).join()`, i)}})})
			var want []string
			for n := range 10 {
				want = append(want, fmt.Sprintf(`read {"path":"%d-%d"}`, i, n))
			}
			if err != nil || !strings.Contains(string(raw), string(marshal(strings.Join(want, ",")))) {
				t.Errorf("%d: %s, %v", i, raw, err)
			}
		})
	}
	wg.Wait()
	if n := len(r.recorded()); n != 1100 {
		t.Errorf("%d records, want 1100", n)
	}
}
