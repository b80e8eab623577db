package provider

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/tool"
)

var (
	update   = flag.Bool("update", false, "rewrite the golden files")
	thorough = flag.Bool("thorough", false, "check every form of every public tool, and many more random schemas")
)

// every returns the stride at which a test samples a large set: 1 when
// thorough, otherwise n, and 4n in make test-fast.
func every(n int) int {
	switch {
	case *thorough:
		return 1
	case testing.Short():
		return 4 * n
	}
	return n
}

// variants are all forms of declarations.
var variants = []struct {
	name     string
	provider string
	options  Options
}{
	{"gemini", Gemini, Options{}},
	{"gemini-openapi", Gemini, Options{Schema: OpenAPISchema}},
	{"openai", OpenAI, Options{}},
	{"openai-strict", OpenAI, Options{Strict: true}},
	{"openai-responses", OpenAIResponses, Options{}},
	{"xai", XAI, Options{}},
	{"anthropic", Anthropic, Options{}},
	{"ollama", Ollama, Options{}},
	{"bedrock", Bedrock, Options{}},
}

// corpus reads the difficult schemas: testdata/corpus/*.json, each a tool
// definition with its server.
func corpus(t testing.TB) map[string]tool.Definition {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.json")
	if err != nil || len(files) < 60 {
		t.Fatalf("corpus has %d files, want at least 60 (%v)", len(files), err)
	}
	defs := map[string]tool.Definition{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ Server string }
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		d, err := tool.ParseDefinition(head.Server, raw)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		defs[strings.TrimSuffix(filepath.Base(file), ".json")] = d
	}
	return defs
}

// TestGolden compares every difficult schema in every form with the reviewed
// output. Run with -update to rewrite it.
func TestGolden(t *testing.T) {
	for name, d := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			tools := NewTools([]tool.Definition{d}, nil)
			var got bytes.Buffer
			for _, v := range variants {
				l, err := tools.Declare(v.provider, nil, v.options)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("== " + v.name + "\n")
				var indented bytes.Buffer
				if err := json.Indent(&indented, l.Body(), "", " "); err != nil {
					t.Fatalf("%s: %v in %s", v.name, err, l.Body())
				}
				got.Write(indented.Bytes())
				got.WriteByte('\n')
			}
			file := filepath.Join("testdata", "golden", name+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; run go test -update and review the file", err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s differs; run go test -update and review the change\n%s", file, firstDifference(got.String(), string(want)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			other := "(end)"
			if i < len(w) {
				other = w[i]
			}
			return "got  " + g[i] + "\nwant " + other
		}
	}
	return "got ends early"
}
