package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLocate(t *testing.T) {
	root := t.TempDir()
	work, user := filepath.Join(root, "work"), filepath.Join(root, "user")
	own := filepath.Join(user, "junctor", "junctor.json")
	for name, tt := range map[string]struct {
		files []string // created first
		dot   string   // .env of the working folder
		o     Options
		env   map[string]string
		want  Place
	}{
		"flag first": {files: []string{"work/junctor.json"}, o: Options{File: "x.json", WorkDir: work}, env: map[string]string{"JUNCTOR_CONFIG": "y"},
			want: Place{Path: filepath.Join(work, "x.json"), Named: true, How: "--config"}},
		"absolute flag":  {o: Options{File: "/etc/../etc/x.json", WorkDir: work}, want: Place{Path: "/etc/x.json", Named: true, How: "--config"}},
		"JUNCTOR_CONFIG": {o: Options{WorkDir: work}, env: map[string]string{"JUNCTOR_CONFIG": "y.json", "MCP_JSON_PATH": "z"}, want: Place{Path: filepath.Join(work, "y.json"), Named: true, How: "$JUNCTOR_CONFIG"}},
		"MCP_JSON_PATH":  {o: Options{BaseDir: work}, env: map[string]string{"MCP_JSON_PATH": "./z.json"}, want: Place{Path: filepath.Join(work, "z.json"), Named: true, How: "$MCP_JSON_PATH"}},
		"empty variable": {o: Options{UserDir: user}, env: map[string]string{"JUNCTOR_CONFIG": ""}, want: Place{Named: true, How: "no file", New: own}},
		"here":           {files: []string{"work/junctor.json", "work/mcp.json", "user/junctor/junctor.json"}, o: Options{WorkDir: work, UserDir: user}, want: Place{Path: filepath.Join(work, "junctor.json"), How: "found in this folder", New: own}},
		"mcp.json here":  {files: []string{"work/mcp.json"}, o: Options{WorkDir: work}, want: Place{Path: filepath.Join(work, "mcp.json"), How: "found in this folder"}},
		"stdio faces do not look here": {files: []string{"work/junctor.json", "user/junctor/junctor.json"}, o: Options{BaseDir: work, UserDir: user},
			want: Place{Path: own, Named: true, How: "the user's configuration folder"}},
		"named in .env here": {files: []string{"work/config/mcp.json"}, dot: "MCP_JSON_PATH=./config/mcp.json\n", o: Options{WorkDir: work, UserDir: user},
			want: Place{Path: filepath.Join(work, "config/mcp.json"), How: "MCP_JSON_PATH in .env of this folder", New: own}},
		".env names what is not there": {dot: "MCP_JSON_PATH=gone.json\n", o: Options{WorkDir: work}, want: Place{Named: true, How: "no file"}},
		"nothing":                      {o: Options{WorkDir: work, UserDir: user}, want: Place{Named: true, How: "no file", New: own}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dir := range []string{work, user} {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range tt.files {
				write(t, filepath.Join(root, f), "{}", 0o600)
			}
			if tt.dot != "" {
				write(t, filepath.Join(work, ".env"), tt.dot, 0o600)
			}
			tt.o.LookupEnv = func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }
			if got := Locate(tt.o); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestTrustIsRequiredForFoundFiles(t *testing.T) {
	work, user := t.TempDir(), t.TempDir()
	file := filepath.Join(work, "mcp.json")
	write(t, file, `{"mcpServers":{"a":{"command":"npx","args":["x"]},"b":{"url":"https://b.example.com"},"c":{"command":"z","disabled":true}}}`, 0o600)
	o := Options{WorkDir: work, UserDir: user}

	_, _, err := Load(o)
	if !isUntrusted(err) || !strings.Contains(err.Error(), "--config mcp.json") {
		t.Fatalf("without a terminal: %v, want a refusal that names --config", err)
	}
	var asked []TrustRequest
	answer := false
	o.Trust = func(r TrustRequest) (bool, error) { asked = append(asked, r); return answer, nil }
	if _, _, err := Load(o); !isUntrusted(err) || strings.Contains(err.Error(), "--config") {
		t.Fatalf("said no: %v", err)
	}
	answer = true
	if _, _, err := Load(o); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(asked[1].Starts, "\n"); got != "a: npx x\nb: https://b.example.com" {
		t.Errorf("shown: %s", got)
	}
	if _, _, err := Load(o); err != nil || len(asked) != 2 {
		t.Errorf("asked again for the same content: %v, %d", err, len(asked))
	}
	write(t, filepath.Join(work, ".env"), "MCP_SERVER_DIST=/evil.js\n", 0o600)
	if _, _, err := Load(o); err != nil || len(asked) != 3 {
		t.Errorf("a new .env was not asked about: %v, %d", err, len(asked))
	}
	if err := os.Remove(filepath.Join(work, ".env")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(o); err != nil || len(asked) != 3 {
		t.Errorf("the old content was forgotten: %v, %d", err, len(asked))
	}
	// The same content in another folder is asked about again.
	other := t.TempDir()
	data, _ := os.ReadFile(file)
	write(t, filepath.Join(other, "mcp.json"), string(data), 0o600)
	o.WorkDir = other
	if _, _, err := Load(o); err != nil || len(asked) != 4 {
		t.Errorf("another folder was not asked about: %v, %d", err, len(asked))
	}
	// With a damaged store the person is asked again, and the store is replaced.
	o.WorkDir = work
	store := filepath.Join(user, "junctor", "trusted.json")
	write(t, store, "{", 0o600)
	if _, _, err := Load(o); err != nil || len(asked) != 5 {
		t.Errorf("damaged store: %v, %d", err, len(asked))
	}
	// The same file needs no trust if it is named.
	if _, _, err := Load(Options{File: file}); err != nil {
		t.Error(err)
	}
}

func TestTrustStoreIsBounded(t *testing.T) {
	s := NewTrustStore(t.TempDir())
	for i := range 50 {
		if err := s.Add(TrustRequest{Path: "p", Digest: strings.Repeat("x", i)}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.read()
	if err != nil || len(got.Files["p"]) != maxTrusted {
		t.Errorf("kept %d, %v", len(got.Files["p"]), err)
	}
	if ok, _ := s.Trusted(TrustRequest{Path: "p", Digest: strings.Repeat("x", 49)}); !ok {
		t.Error("the newest was dropped")
	}
	if err := NewTrustStore("").Add(TrustRequest{}); err != nil {
		t.Error(err)
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.json")
	f, err := os.Create(big)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(maxFile + 1); err != nil {
		t.Fatal(err)
	}
	f.Close()
	locked := filepath.Join(dir, "locked.json")
	write(t, locked, "{}", 0o000)
	write(t, filepath.Join(dir, "utf16.json"), "\xff\xfe{\x00}\x00", 0o600)
	write(t, filepath.Join(dir, "latin1.json"), "{ \"a\": \"\xe4\" }", 0o600)
	write(t, filepath.Join(dir, "deep.json"), strings.Repeat("[", 100_000), 0o600)
	write(t, filepath.Join(dir, "folder", "mcp.json"), "{}", 0o600)
	for file, want := range map[string]string{
		"big.json":         "larger than 4 MiB",
		"gone.json":        "no such file",
		"utf16.json":       "UTF-16",
		"latin1.json":      "latin1.json:1:9: is not UTF-8",
		"deep.json":        "is nested deeper",
		".":                "is a folder; name the file in it",
		"folder":           filepath.Join("folder", "mcp.json"),
		"locked.json":      "is not readable",
		"gone.json/x.json": "no such file",
		"big.json/x.json":  "cannot be read: not a directory",
	} {
		t.Run(strings.ReplaceAll(file, "/", " as a folder of "), func(t *testing.T) {
			if file == "locked.json" {
				if f, err := os.Open(locked); err == nil {
					f.Close()
					t.Skip("this user may read everything")
				}
			}
			_, _, err := Load(Options{File: file, BaseDir: dir})
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Base(file)) && file != "." {
				t.Errorf("err = %v, want %q", err, want)
			}
		})
	}
}
