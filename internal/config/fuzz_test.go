package config

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"junctor/internal/upstream"
)

// FuzzParse loads arbitrary text. The result must be a valid configuration or
// problems with positions, never a panic. A file that loads must also load
// after an edit.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/load/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data := readArchive(&testing.T{}, path)
		for name, text := range data.files {
			if strings.HasSuffix(name, ".json") {
				f.Add(text, "A=1\nB='x'\n")
			}
		}
	}
	f.Fuzz(func(t *testing.T, text, env string) {
		vars, _ := parseDotenv(&source{data: []byte(env)})
		o := Options{LookupEnv: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, BaseDir: "/base", Home: "/home"}
		cfg, notes, err := Parse("fuzz.json", []byte(text), o)
		for _, n := range notes {
			if n.Msg == "" {
				t.Errorf("a note without words: %+v", n)
			}
		}
		if err != nil {
			e, ok := errors.AsType[*Error](err)
			if !ok || len(e.Problems) == 0 || cfg != nil {
				t.Fatalf("err = %#v, config %v", err, cfg)
			}
			for _, p := range e.Problems {
				if p.Msg == "" || p.Line > 1+strings.Count(text, "\n") {
					t.Errorf("problem %+v", p)
				}
			}
			return
		}
		// Disabled servers may lack required settings.
		checked := *cfg
		checked.Servers = slices.DeleteFunc(slices.Clone(cfg.Servers), func(s upstream.Config) bool { return !s.Enabled })
		if err := checked.Validate(); err != nil {
			t.Fatalf("loaded but not valid: %v", err)
		}
		if _, err := json.Marshal(cfg.Effective()); err != nil {
			t.Fatal(err)
		}
		edited, err := EditBytes([]byte(text), Set("zz-new", json.RawMessage(`{"command":"x"}`)))
		if err != nil {
			t.Fatalf("cannot be edited: %v", err)
		}
		again, _, err := Parse("fuzz.json", edited, o)
		if err != nil {
			t.Fatalf("after an edit: %v\n%s", err, edited)
		}
		if _, ok := again.Server("zz-new"); !ok || len(again.Servers) < len(cfg.Servers) {
			t.Fatalf("the edit is not there or others are gone:\n%s", edited)
		}
	})
}

// FuzzDotenv parses arbitrary .env files.
func FuzzDotenv(f *testing.F) {
	f.Add("A=1\nexport B=\"x\ny\"\n#c\nC='z' # d\n")
	f.Add("=\nA\nA=\"")
	f.Fuzz(func(t *testing.T, text string) {
		vars, problems := parseDotenv(&source{file: ".env", data: []byte(text)})
		for name := range vars {
			if !isVariable(name) {
				t.Errorf("a variable named %q", name)
			}
		}
		for _, p := range problems {
			if p.Line < 1 || p.Line > 1+strings.Count(text, "\n") {
				t.Errorf("problem %+v", p)
			}
		}
	})
}
