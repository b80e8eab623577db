package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// archive is a golden test in one file: sections that begin with "-- name --".
type archive struct {
	names []string
	files map[string]string
}

func readArchive(t *testing.T, path string) *archive {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := &archive{files: map[string]string{}}
	name := ""
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- "); ok && strings.HasSuffix(rest, " --") {
			name = strings.TrimSuffix(rest, " --")
			a.names = append(a.names, name)
			a.files[name] = ""
			continue
		}
		a.files[name] += line
	}
	return a
}

func (a *archive) write(t *testing.T, path string) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(a.files[""])
	for _, name := range a.names {
		fmt.Fprintf(&b, "-- %s --\n%s", name, a.files[name])
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (a *archive) set(name, content string) {
	if _, ok := a.files[name]; !ok {
		a.names = append(a.names, name)
	}
	a.files[name] = content
}

// lookup returns the section "env" as an environment.
func (a *archive) lookup(t *testing.T, dir string) func(string) (string, bool) {
	vars, problems := parseDotenv(&source{data: []byte(strings.ReplaceAll(a.files["env"], "$DIR", dir))})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

// TestGolden loads every example in testdata/load: those of the seeds, those of
// other clients, and invalid ones.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/load/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			a := readArchive(t, path)
			dir := t.TempDir()
			main := ""
			for _, name := range a.names {
				if name == "env" || name == "want" {
					continue
				}
				if main == "" && strings.HasSuffix(name, ".json") {
					main = name
				}
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(a.files[name]), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			o := Options{LookupEnv: a.lookup(t, dir), BaseDir: dir, Home: filepath.Join(dir, "home")}
			if main != "" {
				o.File = main
			}
			got := strings.ReplaceAll(outcome(Load(o)), dir, "$DIR")
			if *update {
				a.set("want", got)
				a.write(t, path)
			}
			if want := a.files["want"]; got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// outcome formats the result of a load: all settings that are not defaults, or
// the problems; then the notes.
func outcome(cfg *Config, notes []Note, err error) string {
	var b strings.Builder
	if err != nil {
		fmt.Fprintln(&b, "ERROR")
		fmt.Fprintln(&b, err)
		var e *Error
		if !errors.As(err, &e) {
			fmt.Fprintf(&b, "(%T)\n", err)
		}
	} else {
		for _, s := range cfg.Effective() {
			if s.Source == fromDefault && s.From == fromDefault {
				continue
			}
			value, merr := json.Marshal(s.Value)
			if merr != nil {
				value = []byte(merr.Error())
			}
			fmt.Fprintf(&b, "%s = %s  # %s\n", s.Key, value, s.From)
		}
	}
	for _, n := range notes {
		fmt.Fprintln(&b, "NOTE", n)
	}
	return b.String()
}
