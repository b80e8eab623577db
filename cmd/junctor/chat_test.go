package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"junctor/internal/launch"
	"junctor/internal/llm/llmtest"
	"junctor/internal/terminal"
	"junctor/internal/upstream/upstreamtest"
)

// person is a user at the command line with a home folder and an environment.
type person struct {
	t    *testing.T
	home string
	env  map[string]string
}

func newPerson(t *testing.T, env map[string]string) *person {
	t.Helper()
	home, err := os.MkdirTemp("", "jc") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	return &person{t: t, home: home, env: env}
}

// types runs a command with typed as its input, and returns the exit code and
// the output.
func (p *person) types(typed string, args ...string) (code int, out, err string) {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(args, &environment{
		Launcher: launch.Launcher{
			Terminal: terminal.Terminal{In: strings.NewReader(typed), Out: &stdout, Err: &stderr, Width: func(io.Writer) (int, bool) { return 0, false }, IsInput: typed != ""},
			Environ:  os.Environ(),
			Lookup:   func(name string) (string, bool) { v, ok := p.env[name]; return v, ok },
			DataDir:  filepath.Join(p.home, "data"),
		},
		workDir: p.home,
		userDir: filepath.Join(p.home, "config"),
		home:    p.home,
	})
	return code, stdout.String(), stderr.String()
}

const modelScript = `{"rules":[
	{"when":{"user":"add","results":0},"reply":{"text":"Let me compute. ","calls":[{"tool":"calculate","args":{"expression":"40+2"}}]}},
	{"when":{"user":"add","result":"approved"},"reply":{"text":"As you wish."}},
	{"when":{"user":"add"},"reply":{"text":"The answer is 42."}},
	{"when":{"user":"ask","results":0},"reply":{"calls":[{"tool":"test:ask"}]}},
	{"when":{"user":"ask"},"reply":{"text":"It got {{result}}"}},
	{"when":{"user":"hello"},"reply":{"text":"hello yourself"}},
	{"when":{"user":"sample","results":0},"reply":{"calls":[{"tool":"test:sample"}]}},
	{"when":{"user":"sample"},"reply":{"text":"It got {{result}}"}},
	{"when":{"user":"wrong","results":0},"reply":{"calls":[{"tool":"calculate","args":{"expression":"1/0"}}]}},
	{"when":{"user":"wrong"},"reply":{"text":"It failed."}}
]}`

func talker(t *testing.T) *person {
	t.Helper()
	s, err := llmtest.ParseScript([]byte(modelScript))
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(llmtest.New(s))
	t.Cleanup(model.Close)
	return newPerson(t, map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": model.URL + "/v1"})
}

func TestChatAnswersOneMessage(t *testing.T) {
	code, out, errs := talker(t).types("", "chat", "please", "add", "things")
	if code != exitDone || !strings.Contains(out, "Let me compute.") || !strings.Contains(out, "The answer is 42.") || !strings.Contains(errs, "✓ junctor:calculate") {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
}

func TestChatConversation(t *testing.T) {
	p := talker(t)
	code, out, errs := p.types("/help\nadd\n\nwrong\n/model\n/model openai/other\n/tools\n/session\n/nonsense\n/quit\n", "chat")
	for _, want := range []string{"/model [ID]", "The answer is 42.", "It failed.", "openai/", "4 tools"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if code != exitDone || !strings.Contains(errs, "✗ junctor:calculate") || !strings.Contains(errs, "unknown command /nonsense") {
		t.Errorf("%d\n%s", code, errs)
	}
	session := regexp.MustCompile(`[A-Z2-7]{26}`).FindString(out)
	if code, out, errs := p.types("", "chat", "--session", session, "add", "again"); code != exitDone || !strings.Contains(out, "42") {
		t.Errorf("coming back to %q: %d %s %s", session, code, out, errs)
	}
	if code, _, errs := p.types("", "chat", "--session", "nobody", "hi"); code != exitFailed || errs == "" {
		t.Errorf("a session that is not there: %d %s", code, errs)
	}
}

func TestChatApproval(t *testing.T) {
	p := talker(t)
	if err := os.MkdirAll(filepath.Join(p.home, "config", "junctor"), 0o700); err != nil {
		t.Fatal(err)
	}
	rules := `{"toolRules":[{"pattern":["junctor:calculate"],"approval":"ask"}]}`
	if err := os.WriteFile(filepath.Join(p.home, "config", "junctor", "junctor.json"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := p.types("add\ny\n/quit\n", "chat"); code != exitDone || !strings.Contains(out, "42") || !strings.Contains(errs, "Run junctor:calculate with") {
		t.Errorf("yes: %d %s %s", code, out, errs)
	}
	if _, out, errs := p.types("add\nn\n/quit\n", "chat"); strings.Contains(out, "42") || !strings.Contains(errs, "✗") {
		t.Errorf("no: %s %s", out, errs)
	}
	if _, out, errs := p.types("", "chat", "add"); strings.Contains(out, "42") || !strings.Contains(errs, "not a terminal") {
		t.Errorf("nobody there: %s %s", out, errs)
	}
	if code, _, errs := p.types("", "tools", "call", "calculate", "expression=1"); code != exitFailed || !strings.Contains(errs, "approval") {
		t.Errorf("tools call without a person: %d %s", code, errs)
	}
	if code, out, _ := p.types("y\n", "tools", "call", "calculate", "expression=1+1"); code != exitDone || !strings.Contains(out, "2") {
		t.Errorf("tools call with a person: %d %s", code, out)
	}
	for _, no := range []string{"n\n", "\n"} {
		if code, out, errs := p.types(no, "tools", "call", "calculate", "expression=5+5"); code != exitFailed || out != "" || !strings.Contains(errs, "not approved; junctor:calculate was not called") {
			t.Errorf("tools call, answered %q: %d %s %s", no, code, out, errs)
		}
	}
	if _, out, errs := p.types("", "logs", "--json"); !strings.Contains(out, "1+1") || strings.Contains(out, "5+5") {
		t.Errorf("the calls that were sent: %s %s", out, errs)
	}
}

func TestChatShowsElicitationRequests(t *testing.T) {
	p := talker(t)
	if err := os.MkdirAll(filepath.Join(p.home, "config", "junctor"), 0o700); err != nil {
		t.Fatal(err)
	}
	server := upstreamtest.Listen(t, upstreamtest.Script{})
	config := `{"mcpServers":{"test":{"url":"` + server.URL + `"}}}`
	if err := os.WriteFile(filepath.Join(p.home, "config", "junctor", "junctor.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ typed, asked, got string }{
		"a form":           {"ask\nAda\n/quit\n", "test asks: who are you?", `{"action":"accept","content":{"name":"Ada"}}`},
		"a form, declined": {"ask\n/no\n/quit\n", "name: ", `{"action":"decline"}`},
		"nothing in it":    {"ask\n\ny\n/quit\n", "Send it?", `{"action":"accept","content":{}}`},
		"the model":        {"sample\ny\n/quit\n", "user: hello", "hello yourself"},
		"the model, no":    {"sample\nn\n/quit\n", "May test ask", "did not allow"},
	} {
		if code, out, errs := p.types(tt.typed, "chat"); code != exitDone || !strings.Contains(out, tt.got) || !strings.Contains(errs, tt.asked) {
			t.Errorf("%s: %d\n%s\n%s", name, code, out, errs)
		}
	}
	if _, out, errs := p.types("", "chat", "ask"); !strings.Contains(out, `{"action":"cancel"}`) || !strings.Contains(errs, "not a terminal") {
		t.Errorf("nobody there: %s %s", out, errs)
	}
}

func TestChatWithoutModelExplainsSetup(t *testing.T) {
	code, _, errs := newPerson(t, nil).types("", "chat", "hello")
	if code != exitFailed || !strings.Contains(errs, "OPENAI_API_KEY") {
		t.Errorf("%d %s", code, errs)
	}
}

func TestToolsCallAsksInTerminal(t *testing.T) {
	p := talker(t)
	if err := os.MkdirAll(filepath.Join(p.home, "config", "junctor"), 0o700); err != nil {
		t.Fatal(err)
	}
	server := upstreamtest.Listen(t, upstreamtest.Script{})
	config := `{"mcpServers":{"test":{"url":"` + server.URL + `"}}}`
	if err := os.WriteFile(filepath.Join(p.home, "config", "junctor", "junctor.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ typed, tool, asked, got string }{
		"a form":            {"Ada\n", "ask", "The server asks: who are you?", `{"action":"accept","content":{"name":"Ada"}}`},
		"a form, declined":  {"/no\n", "ask", "name: ", `{"action":"decline"}`},
		"a form, cancelled": {"/cancel\n", "ask", "name: ", `{"action":"cancel"}`},
		"the model":         {"y\n", "sample", "user: hello", "hello yourself"},
		"not a terminal":    {"", "ask", "", "nobody to ask"},
	} {
		if code, out, errs := p.types(tt.typed, "tools", "call", "test:"+tt.tool); code != exitDone || !strings.Contains(out, tt.got) || !strings.Contains(errs, tt.asked) {
			t.Errorf("%s: %d\n%s\n%s", name, code, out, errs)
		}
	}
	if _, out, errs := p.types("n\n", "tools", "call", "test:sample"); !strings.Contains(out+errs, "did not allow") {
		t.Errorf("the model, no: %s %s", out, errs)
	}
	p.env = nil
	if _, out, errs := p.types("y\n", "tools", "call", "test:sample"); !strings.Contains(out+errs, "no model is set up") {
		t.Errorf("no model: %s %s", out, errs)
	}
}
