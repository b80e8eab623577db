package llmtest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"junctor/internal/llm/llmtest"
)

// node returns a Node.js that can run OpenAI's SDK, and the directory of the
// npm packages.
func node(t *testing.T) (program, packages string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs npm packages; not in make test-fast")
	}
	packages, err := filepath.Abs(filepath.Join("..", "..", "..", "e2e"))
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(packages, "node_modules", ".bin", "node")
	for _, need := range []string{program, filepath.Join(packages, "node_modules", "openai")} {
		if _, err := os.Stat(need); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is missing; run npm ci in e2e", need)
			}
			t.Skipf("%s is missing; run npm ci in e2e", need)
		}
	}
	return program, packages
}

func TestJavaScriptSDKsUnderstandResponses(t *testing.T) {
	program, packages := node(t)
	s := llmtest.Start(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{Match: `add (\d+) and (\d+)`, Results: llmtest.N(0)}, Reply: llmtest.Reply{
			Reasoning: "I should add those numbers.",
			Calls:     []llmtest.Call{{Tool: "calc:add", Args: json.RawMessage(`{"a":"=$1","b":"=$2"}`)}, {Tool: "add", Args: json.RawMessage(`{"a":0}`)}}}},
		{When: llmtest.When{User: "add", Results: llmtest.N(2)}, Reply: llmtest.Reply{Text: "It is {{result}}."}},
	}})
	cmd := exec.CommandContext(t.Context(), program, filepath.Join("testdata", "sdks.mjs"), s.URL, packages)
	cmd.Stderr = os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, raw)
	}
	var out map[string]struct {
		Text  []string
		Calls []any
		Last  string
		Error string
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	for _, api := range []string{llmtest.Chat, llmtest.Responses, llmtest.Anthropic, llmtest.Gemini} {
		got := fmt.Sprintf("%+v", out[api])
		want := "{Text:[You said: grüß dich 😀 You said: grüß dich 😀] Calls:[[calc__add map[a:1 b:2]] [calc__add map[a:0]]] Last:It is 3. Error:}"
		if got != want {
			t.Errorf("%s: got  %s\nwant %s", api, got, want)
		}
	}
}
