package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folderFixture is an empty home, and a working folder with a .env.
type folderFixture struct {
	t     *testing.T
	o     Options
	asked []TrustRequest
}

func newFolderFixture(t *testing.T, dotenv string, answer bool) *folderFixture {
	t.Helper()
	home, work := t.TempDir(), t.TempDir()
	r := &folderFixture{t: t, o: Options{WorkDir: work, BaseDir: work, UserDir: home, Home: home}}
	r.o.Trust = func(q TrustRequest) (bool, error) {
		r.asked = append(r.asked, q)
		return answer, nil
	}
	r.write(filepath.Join(work, ".env"), dotenv)
	return r
}

func (r *folderFixture) write(path, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *folderFixture) load() (*Config, []Note) {
	r.t.Helper()
	cfg, notes, err := Load(r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	return cfg, notes
}

const folderVars = "PORT=9999\nLOG_LEVEL=debug\nGEMINI_API_KEY=k\nUNRELATED=x\nMCP_SERVER_DIST=/evil.js\nJUNCTOR_ADMIN_KEY=aaaaaaaaaaaaaaaaaaaa\nOPENAI_BASE_URL=http://evil\nOLLAMA_HOST=http://evil\nOTEL_EXPORTER_OTLP_ENDPOINT=http://evil\nJUNCTOR_CONFIG=/evil.json\n"

func TestFolderDotenvIsUsedWhenTrusted(t *testing.T) {
	r := newFolderFixture(t, folderVars, true)
	cfg, notes := r.load()
	if cfg.Listen != "127.0.0.1:9999" || cfg.Log.Level != "debug" || len(notes) > 0 || len(cfg.Servers) > 0 {
		t.Errorf("listen %s, level %s, servers %v, notes %v", cfg.Listen, cfg.Log.Level, cfg.Servers, notes)
	}
	if v, _ := cfg.Lookup("GEMINI_API_KEY"); v != "k" {
		t.Errorf("GEMINI_API_KEY = %q", v)
	}
	for _, name := range []string{"MCP_SERVER_DIST", "JUNCTOR_ADMIN_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST", "OTEL_EXPORTER_OTLP_ENDPOINT", "JUNCTOR_CONFIG", "UNRELATED"} {
		if v, ok := cfg.Lookup(name); ok {
			t.Errorf("%s = %q is taken from the folder", name, v)
		}
	}
	if len(r.asked) != 1 || !slices.Equal(r.asked[0].Variables, []string{"GEMINI_API_KEY", "LOG_LEVEL", "PORT"}) {
		t.Errorf("asked %+v", r.asked)
	}
	r.load()
	if len(r.asked) != 1 {
		t.Error("it asks again for the same content")
	}
	r.write(filepath.Join(r.o.WorkDir, ".env"), "PORT=7777\n")
	if cfg, _ := r.load(); len(r.asked) != 2 || cfg.Listen != "127.0.0.1:7777" {
		t.Errorf("a changed file: asked %d times, listen %s", len(r.asked), cfg.Listen)
	}
}

func TestFolderDotenvIsIgnoredWhenNotTrusted(t *testing.T) {
	for name, ask := range map[string]bool{"refused": true, "nobody to ask": false} {
		t.Run(name, func(t *testing.T) {
			r := newFolderFixture(t, folderVars, false)
			if !ask {
				r.o.Trust = nil
			}
			for range 2 {
				cfg, notes := r.load()
				if cfg.Listen != Default().Listen || cfg.Log.Level != Default().Log.Level {
					t.Errorf("listen %s, level %s", cfg.Listen, cfg.Log.Level)
				}
				if len(notes) != 1 || !strings.Contains(notes[0].Msg, "sets GEMINI_API_KEY, LOG_LEVEL, PORT, which are not used") || strings.Contains(notes[0].String(), "evil") {
					t.Errorf("notes %v", notes)
				}
			}
			if want := map[bool]int{true: 1}[ask]; len(r.asked) != want {
				t.Errorf("asked %d times", len(r.asked))
			}
		})
	}
}

func TestFolderDotenvWithoutUseIsNotAskedAbout(t *testing.T) {
	r := newFolderFixture(t, "DATABASE_URL=x\nJUNCTOR_CONFIG=/x\nnot a line\n", true)
	cfg, notes := r.load()
	if len(r.asked) > 0 || len(notes) > 0 {
		t.Errorf("asked %v, notes %v", r.asked, notes)
	}
	if v, ok := cfg.Lookup("DATABASE_URL"); ok {
		t.Errorf("DATABASE_URL = %q is found later, although nobody was asked", v)
	}
	// A server in the user's own file uses the variable: now it is asked about,
	// and the gateway differs from that of a process without it.
	r.write(filepath.Join(r.o.UserDir, "junctor", "junctor.json"), `{"mcpServers":{"db":{"command":"x","args":["${DATABASE_URL}"]}}}`)
	cfg, _ = r.load()
	if len(r.asked) != 1 || cfg.Servers[0].Args[0] != "x" || cfg.Environment() == "" {
		t.Errorf("asked %v, servers %+v", r.asked, cfg.Servers)
	}
	// The .env beside the file overrides that of the folder.
	r.write(filepath.Join(r.o.UserDir, "junctor", ".env"), "DATABASE_URL=own\n")
	if cfg, _ := r.load(); cfg.Servers[0].Args[0] != "own" {
		t.Errorf("servers %+v", cfg.Servers)
	}
}

func TestFolderDotenvIsNamedByProgramsOfClients(t *testing.T) {
	r := newFolderFixture(t, folderVars, true)
	r.o.WorkDir, r.o.Trust = "", nil
	cfg, notes := r.load()
	if cfg.Listen != Default().Listen || len(notes) != 1 || !strings.Contains(notes[0].String(), ".env") || !strings.Contains(notes[0].Msg, "not read") {
		t.Errorf("listen %s, notes %v", cfg.Listen, notes)
	}
	if _, ok := cfg.Lookup("GEMINI_API_KEY"); ok {
		t.Error("a variable of the folder is used")
	}
}

func TestDotenvBesideAFoundFileStartsNothing(t *testing.T) {
	r := newFolderFixture(t, folderVars, true)
	r.write(filepath.Join(r.o.WorkDir, "junctor.json"), `{}`)
	cfg, _ := r.load()
	if cfg.Listen != "127.0.0.1:9999" || len(cfg.Servers) > 0 || len(r.asked) != 1 {
		t.Errorf("listen %s, servers %v, asked %v", cfg.Listen, cfg.Servers, r.asked)
	}
	if _, ok := cfg.Lookup("JUNCTOR_ADMIN_KEY"); ok {
		t.Error("JUNCTOR_ADMIN_KEY is taken from the folder")
	}
}
