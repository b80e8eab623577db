package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestEntriesRoundTrip reads the servers of every example that loads, writes
// them into a new file beside it, and checks that loading it gives the same
// servers.
func TestEntriesRoundTrip(t *testing.T) {
	paths, _ := filepath.Glob("testdata/load/*.txt")
	for _, path := range paths {
		a := readArchive(t, path)
		if strings.HasPrefix(a.files["want"], "ERROR") {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			dir := t.TempDir()
			main := ""
			for _, name := range a.names {
				if name == "env" || name == "want" {
					continue
				}
				write(t, filepath.Join(dir, name), a.files[name], 0o600)
				if main == "" && strings.HasSuffix(name, ".json") {
					main = filepath.Join(dir, name)
				}
			}
			if main == "" {
				t.Skip("no file")
			}
			o := Options{File: main, LookupEnv: a.lookup(t, dir), Home: filepath.Join(dir, "home")}
			want := loaded(t, o)

			data, err := os.ReadFile(main)
			if err != nil {
				t.Fatal(err)
			}
			found, err := Entries(main, data)
			if err != nil {
				t.Fatal(err)
			}
			text := []byte("// taken over\n{}\n")
			for _, e := range found {
				if e.Server == nil {
					t.Errorf("entry %+v", e)
				}
				if text, err = EditBytes(text, Set(LegalName(e.Name), e.Server)); err != nil {
					t.Fatal(err)
				}
			}
			o.File = filepath.Join(filepath.Dir(main), "new.json")
			write(t, o.File, string(text), 0o600)
			if got := loaded(t, o); !reflect.DeepEqual(got.Servers, want.Servers) {
				t.Errorf("got:\n%s\nwant:\n%s\nfrom:\n%s", outcome(got, nil, nil), outcome(want, nil, nil), text)
			}
		})
	}
}

func TestEntriesOfUnusualFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		text    string
		entries int
		err     string
	}{
		"empty":         {"\ufeff \n", 0, ""},
		"broken":        {"{", 0, "unexpected end of file"},
		"nothing":       {`{"other": 1}`, 0, ""},
		"opencode":      {`{"mcp": {"x": {"type": "local"}}}`, 0, ""},
		"not a server":  {`{"mcpServers": {"a": 5, "b": {"command": "x", "odd": null, "args": [1, true, "<&>"]}}}`, 2, ""},
		"two of a name": {`{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`, 1, "is defined twice"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Entries("f", []byte(tt.text))
			if len(got) != tt.entries || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %+v, %v", got, err)
			}
			if name == "not a server" {
				if got[0].Server != nil || len(got[0].Problems) != 1 || string(got[1].Server) != `{"command":"x","args":[1,true,"<&>"]}` {
					t.Errorf("got %s, %+v", got[1].Server, got[0])
				}
			}
		})
	}
}

func TestLegalServerNames(t *testing.T) {
	for in, want := range map[string]string{
		"ok": "ok", "My Server": "My-Server", "a/b": "a-b", "github.com/x/servers/src/github": "github", "!": "", "é": "",
		strings.Repeat("a", 70): strings.Repeat("a", 64), "a//": "a",
	} {
		if got := LegalName(in); got != want {
			t.Errorf("LegalName(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"api-key": "API_KEY", "9lives": "LIVES", "--": "NAME", "a.b c": "A_B_C"} {
		if got := VariableName(in); got != want {
			t.Errorf("VariableName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseDotenv(t *testing.T) {
	if vars, err := ParseDotenv(".env", []byte("A=1\nbad\n")); vars["A"] != "1" || err == nil || !strings.Contains(err.Error(), ".env:2:1") {
		t.Errorf("%v, %v", vars, err)
	}
	file := filepath.Join(t.TempDir(), "x")
	if err := WriteFile(file, []byte("y")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
}
