package agentify

import (
	"encoding/json"
	"strings"
	"testing"

	"junctor/internal/tool"
)

func definitionOf(t *testing.T, raw string) *tool.Definition {
	t.Helper()
	d, err := tool.ParseDefinition("x", json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return &d
}

func TestContextCompletesArguments(t *testing.T) {
	read := def("read_file", "Read a file", `{"path":{"type":"string"}}`)
	move := def("move_file", "Move a file", `{"source":{"type":"string"},"destination":{"type":"string"}}`)
	translate := def("translate", "Translate text", `{"source":{"type":"string"},"path":{"type":"string","description":"key, relative to the root of the document"}}`)
	nested := def("edit", "Edit files", `{"edits":{"type":"array","items":{"type":"object","properties":{"filePath":{"type":"string"},"text":{"type":"string"}}}},"paths":{"type":"array","items":{"type":"string"}}}`)
	remote := def("get", "Get a file", `{"repo":{"type":"string"},"path":{"type":"string"}}`)
	git := def("git_add", "Add files", `{"repo_path":{"type":"string"},"files":{"type":"array","items":{"type":"string"}}}`)
	uri := def("open", "Open a file", `{"path":{"type":"string","format":"uri"}}`)
	full := Context{ActiveDocumentURI: "file:///home/ada/app/My%20Notes.md", CurrentWorkingDirectory: "/home/ada/app", SelectionText: "a \"quoted\"\nline"}
	for name, tt := range map[string]struct {
		tool, in, want string
		ctx            Context
		remote         bool
	}{
		"relative":           {tool: read, ctx: full, in: `{"path":"src/main.go"}`, want: `{"path":"/home/ada/app/src/main.go"}`},
		"dots":               {tool: read, ctx: full, in: `{"path":"../other/./x"}`, want: `{"path":"/home/ada/other/x"}`},
		"here":               {tool: read, ctx: full, in: `{"path":"."}`, want: `{"path":"/home/ada/app"}`},
		"absolute":           {tool: read, ctx: full, in: `{"path":"/etc/x"}`, want: `{"path":"/etc/x"}`},
		"home":               {tool: read, ctx: full, in: `{"path":"~/x"}`, want: `{"path":"~/x"}`},
		"a URL":              {tool: read, ctx: full, in: `{"path":"https://x/y"}`, want: `{"path":"https://x/y"}`},
		"no folder":          {tool: read, ctx: Context{}, in: `{"path":"x"}`, want: `{"path":"x"}`},
		"odd folder":         {tool: read, ctx: Context{CurrentWorkingDirectory: "somewhere"}, in: `{"path":"x"}`, want: `{"path":"x"}`},
		"remote backend":     {tool: read, ctx: full, in: `{"path":"x"}`, want: `{"path":"x"}`, remote: true},
		"windows":            {tool: read, ctx: Context{CurrentWorkingDirectory: `C:\app`}, in: `{"path":"src\\a.go"}`, want: `{"path":"C:\\app\\src\\a.go"}`},
		"windows share":      {tool: read, ctx: Context{CurrentWorkingDirectory: `\\box\app`}, in: `{"path":"a"}`, want: `{"path":"\\\\box\\app\\a"}`},
		"windows absolute":   {tool: read, ctx: full, in: `{"path":"D:\\x"}`, want: `{"path":"D:\\x"}`},
		"about files":        {tool: move, ctx: full, in: `{"source":"a.txt","destination":"b.txt"}`, want: `{"destination":"/home/ada/app/b.txt","source":"/home/ada/app/a.txt"}`},
		"not about files":    {tool: translate, ctx: full, in: `{"source":"en","path":"a.b"}`, want: `{"source":"en","path":"a.b"}`},
		"nested":             {tool: nested, ctx: full, in: `{"edits":[{"filePath":"a","text":"b"}],"paths":["c","/d"]}`, want: `{"edits":[{"filePath":"/home/ada/app/a","text":"b"}],"paths":["/home/ada/app/c","/d"]}`},
		"in a repository":    {tool: remote, ctx: full, in: `{"repo":"r","path":"a"}`, want: `{"repo":"r","path":"a"}`},
		"a repository here":  {tool: git, ctx: full, in: `{"repo_path":"."}`, want: `{"repo_path":"/home/ada/app"}`},
		"file URI":           {tool: read, ctx: full, in: `{"path":"file:///home/ada/app/My%20Notes.md"}`, want: `{"path":"/home/ada/app/My Notes.md"}`},
		"URI wanted":         {tool: uri, ctx: full, in: `{"path":"file:///x"}`, want: `{"path":"file:///x"}`},
		"placeholders":       {tool: translate, ctx: full, in: `{"source":"<${context.selectionText}> in ${context.activeDocumentPath} of ${context.currentWorkingDirectory}"}`, want: `{"source":"<a \"quoted\"\nline> in /home/ada/app/My Notes.md of /home/ada/app"}`},
		"placeholder of URI": {tool: read, ctx: full, in: `{"path":"${context.activeDocumentURI}"}`, want: `{"path":"/home/ada/app/My Notes.md"}`},
		"nothing to hold":    {tool: read, ctx: Context{}, in: `{"path":"${context.selectionText}"}`, want: `{"path":"${context.selectionText}"}`},
		"numbers stay":       {tool: nested, ctx: full, in: `{"paths":["a"],"n":12345678901234567890,"x":1.50}`, want: `{"n":12345678901234567890,"paths":["/home/ada/app/a"],"x":1.50}`},
		"bytes stay":         {tool: read, ctx: full, in: `{ "path" : "/x" , "n":1e3}`, want: `{ "path" : "/x" , "n":1e3}`},
		"no object":          {tool: read, ctx: full, in: `[1]`, want: `[1]`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(tt.ctx.complete(json.RawMessage(tt.in), definitionOf(t, tt.tool), !tt.remote)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestFilePath(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///a/b%20c": "/a/b c", "file://localhost/a": "/a", "file:///C:/x/y": `C:\x\y`, "file://box/share/x": `\\box\share\x`,
		"untitled:Untitled-1": "", "https://x/y": "", "%zz": "",
	} {
		if got := filePath(uri); got != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
}

func TestPromptShowsAndBoundsTheContext(t *testing.T) {
	long := strings.Repeat("x", shownSelection) + strings.Repeat("y", 100_000) + "the end"
	got := Task{Query: "q", Context: Context{ActiveDocumentURI: "file:///a.go", SelectionText: long}}.prompt()
	for _, want := range []string{"Query: q", "activeDocumentPath: /a.go", "the end", placeholderSelection, "are not shown"} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing of %q", want)
		}
	}
	if len(got) > shownSelection+shownTail+1000 {
		t.Errorf("%d bytes", len(got))
	}
	if got := (Task{Query: "q"}).prompt(); !strings.Contains(got, "no context") {
		t.Errorf("%q", got)
	}
}

func TestParseTask(t *testing.T) {
	f := newFixture(t, nil, noScript).Face
	for name, tt := range map[string]struct {
		in   string
		want []string // violations; nil means that the task is valid
	}{
		"plain":        {`{"query":"x"}`, nil},
		"nulls":        {`{"query":"x","context":null,"dryRun":null}`, nil},
		"null members": {`{"query":"x","context":{"activeDocumentURI":null,"currentWorkingDirectory":null,"selectionText":null}}`, nil},
		"more members": {`{"query":"x","workDoneToken":1,"_meta":{},"context":{"language":"go"}}`, nil},
		"an untitled":  {`{"query":"x","context":{"activeDocumentURI":"untitled:Untitled-1"}}`, nil},
		"nothing":      {``, []string{"query"}},
		"null":         {`null`, []string{"object"}},
		"array":        {`["x"]`, []string{"object"}},
		"blank":        {`{"query":"  "}`, []string{"/query"}},
		"wrong types":  {`{"query":7,"context":{"selectionText":1,"activeDocumentURI":"no uri"},"dryRun":"yes"}`, []string{"/query", "/context/selectionText", "/context/activeDocumentURI", "/dryRun"}},
		"one megabyte": {`{"query":"` + strings.Repeat("x", 1<<20) + `"}`, []string{"/query"}},
		"broken":       {`{"query":`, []string{"JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.ParseTask(json.RawMessage(tt.in))
			if tt.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e := tool.AsError(err)
			if e.Kind != tool.InvalidArguments || len(e.Msg) > 4096 {
				t.Fatalf("%s %.300s", e.Kind, e.Msg)
			}
			for _, want := range tt.want {
				if !strings.Contains(e.Msg, want) {
					t.Errorf("nothing about %s in %s", want, e.Msg)
				}
			}
		})
	}
}

func TestURITemplateMatches(t *testing.T) {
	for _, tt := range []struct {
		template, uri string
		want          bool
	}{
		{"demo://x/{id}", "demo://x/7", true}, {"demo://x/{id}", "demo://x/7/8", false}, {"demo://x/{id}", "demo://x/{id}", false},
		{"demo://x/{+path}", "demo://x/a/b", true}, {"demo://x{/path*}", "demo://x/a/b", true}, {"demo://x{?q,r}", "demo://x?q=1", true},
		{"demo://x{?q}", "demo://x", true}, {"demo://x/{id", "demo://x/7", false}, {"demo://x/{id}", "x/7", false}, {"a(b:{x}", "a(b:1", false},
	} {
		if got := (extra{kind: aTemplate, key: tt.template}).matches(tt.uri); got != tt.want {
			t.Errorf("%s makes %s: %v", tt.template, tt.uri, got)
		}
	}
	if (extra{kind: aPrompt, key: "x:y"}).matches("x:y") {
		t.Error("a prompt is no resource")
	}
}

func FuzzContext(f *testing.F) {
	d := tool.Definition{Name: tool.Name{Server: "x", Tool: "read_file"}, InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"paths":{"type":"array","items":{"type":"string"}}}}`)}
	f.Add(`{"path":"a","paths":["b",{"path":"c"}]}`, "/home/ada", "file:///x", "${context.currentWorkingDirectory}")
	f.Add(`{"path":"${context.selectionText}"}`, `C:\x`, "file://h/x", "y")
	f.Fuzz(func(t *testing.T, arguments, cwd, uri, selection string) {
		c := Context{CurrentWorkingDirectory: cwd, ActiveDocumentURI: uri, SelectionText: selection}
		got := c.complete(json.RawMessage(arguments), &d, true)
		if json.Valid([]byte(arguments)) && !json.Valid(got) {
			t.Errorf("%q became %q", arguments, got)
		}
		_ = Task{Query: selection, Context: c}.prompt()
		_ = c.words()
		_ = extra{kind: aTemplate, key: selection}.matches(uri)
	})
}
