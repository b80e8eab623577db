package clients

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"junctor/internal/config"
	"junctor/internal/telemetry"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s (%v)\ngot:\n%s\nwant:\n%s", path, err, got, want)
	}
}

// TestFiles keeps the places of all clients' files on all three systems.
func TestFiles(t *testing.T) {
	env := map[string]string{}
	for _, m := range []Machine{
		{OS: "linux", Home: "/home/me", Project: "/home/me/work"},
		{OS: "darwin", Home: "/Users/me", Project: "/Users/me/work"},
		{OS: "windows", Home: `C:\Users\me`, Project: `C:\Users\me\work`},
	} {
		m.Getenv = func(name string) string { return env[name] }
		golden(t, filepath.Join("testdata", "files-"+m.OS+".txt"), listing(m))
	}
	env = map[string]string{"XDG_CONFIG_HOME": "/xdg", "CLAUDE_CONFIG_DIR": "/cc", "CODEX_HOME": "/cx", "CLINE_DIR": "/cl", "APPDATA": `D:\Roaming`}
	get := func(name string) string { return env[name] }
	golden(t, filepath.Join("testdata", "files-environment.txt"),
		listing(Machine{OS: "linux", Home: "/home/me", Getenv: get})+"\n"+listing(Machine{OS: "windows", Home: `C:\Users\me`, Getenv: get}))
}

func listing(m Machine) string {
	var b strings.Builder
	for _, c := range Known() {
		for _, f := range c.Files(m) {
			mark := ""
			if f.connect {
				mark = " (connect)"
			}
			fmt.Fprintf(&b, "%-14s %-7s %-4s %s [%s]%s\n", f.Client, f.Scope, f.Format, f.Path, strings.Join(f.keys, " > "), mark)
		}
	}
	return b.String()
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{"claude": "claude-desktop", "Cursor": "cursor", "gemini": "gemini-cli", "roo": "roo-code"} {
		if c, err := Lookup(name); err != nil || c.ID != want {
			t.Errorf("Lookup(%s) = %s, %v", name, c.ID, err)
		}
	}
	if _, err := Lookup("emacs"); err == nil || !strings.Contains(err.Error(), "claude-code") {
		t.Error(err)
	}
	if c, _ := Lookup("claude"); c.TakesURL() {
		t.Error("Claude Desktop takes no URL in its file")
	}
}

// sections parts a golden file at lines such as "-- name --".
func sections(t *testing.T, path string) (names []string, files map[string]string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	name := ""
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- "); ok && strings.HasSuffix(rest, " --") {
			name = strings.TrimSuffix(rest, " --")
			names = append(names, name)
			files[name] = ""
			continue
		}
		files[name] += line
	}
	return names, files
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func machine(dir string) Machine {
	return Machine{OS: "linux", Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project")}
}

// TestDiscover reads real files of each client.
func TestDiscover(t *testing.T) {
	paths, err := filepath.Glob("testdata/discover/*.txt")
	if err != nil || len(paths) < 10 {
		t.Fatal("golden files missing", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			names, files := sections(t, path)
			dir := t.TempDir()
			for _, name := range names {
				if name != "want" {
					write(t, filepath.Join(dir, name), strings.ReplaceAll(files[name], "$DIR", dir))
				}
			}
			got := strings.ReplaceAll(describe(Discover(machine(dir))), dir, "$DIR")
			if *update {
				var b strings.Builder
				b.WriteString(files[""])
				for _, name := range names {
					if name != "want" {
						fmt.Fprintf(&b, "-- %s --\n%s", name, files[name])
					}
				}
				fmt.Fprintf(&b, "-- want --\n%s", got)
				if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := files["want"]; got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func describe(found []Found) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s %s %s\n", f.File.Client, f.File.Scope, f.File.Path)
		if f.Err != nil {
			fmt.Fprintf(&b, "  ERROR %v\n", f.Err)
		}
		for _, s := range f.Skipped {
			fmt.Fprintf(&b, "  SKIPPED %s\n", s)
		}
		for _, s := range f.Servers {
			fmt.Fprintf(&b, "  %s %s\n", s.Name, s.JSON)
			for _, n := range s.Notes {
				fmt.Fprintf(&b, "    note: %s\n", n)
			}
			for _, secret := range s.Secrets {
				fmt.Fprintf(&b, "    secret: %s -> ${%s}\n", secret.Key, secret.Variable)
			}
		}
	}
	return b.String()
}

// Every server that is found must be one that the configuration takes, when
// its variables are set.
func TestFoundServersLoad(t *testing.T) {
	paths, _ := filepath.Glob("testdata/discover/*.txt")
	for _, path := range paths {
		names, files := sections(t, path)
		dir := t.TempDir()
		for _, name := range names {
			if name != "want" {
				write(t, filepath.Join(dir, name), strings.ReplaceAll(files[name], "$DIR", dir))
			}
		}
		candidates := slices.DeleteFunc(Compare(Discover(machine(dir)), nil), func(c Candidate) bool {
			// The user was told to write something else there.
			return slices.ContainsFunc(c.Notes, func(n string) bool {
				return strings.Contains(n, "different folder") || strings.Contains(n, "no meaning")
			})
		})
		text, err := config.EditBytes(nil, Edits(candidates)...)
		if err != nil {
			t.Fatal(path, err)
		}
		settings := []string{"PORT", "LOG_LEVEL", "MAX_TOKEN_COUNT", "DEFAULT_TOOL_TIMEOUT_MS", "DEBUG_PORT", "MCP_SERVER_DIST"}
		_, _, err = config.Parse(path, text, config.Options{LookupEnv: func(name string) (string, bool) {
			return "https://value.example.com", strings.ToUpper(name) == name && !slices.Contains(settings, name)
		}, Home: "/home"})
		if err != nil && !strings.Contains(path, "odd") {
			t.Errorf("%s: %v\n%s", path, err, text)
		}
	}
}

func TestCompare(t *testing.T) {
	server := func(client, name, raw string) Server {
		return Server{Name: name, Original: name, JSON: json.RawMessage(raw), File: File{Client: client, Path: "/" + client}}
	}
	found := []Found{
		{Servers: []Server{
			server("cursor", "new", `{"command":"a"}`),
			server("cursor", "same", `{"command":"s","args":[],"transport":"stdio","enabled":true}`),
			server("cursor", "differs", `{"command":"d","args":["2"],"cwd":"/x"}`),
			server("cursor", "renamed", `{"url":"https://r.example.com","transport":"auto"}`),
			server("cursor", "junctor", `{"command":"C:\\bin\\junctor.exe","args":["mcp"]}`),
			server("cursor", "hub", `{"command":"npx","args":["-y","junctor@1","mcp"]}`),
			server("cursor", "web", `{"url":"http://127.0.0.1:8787/mcp"}`),
			server("cursor", "null", `null`),
		}},
		{Servers: []Server{
			server("zed", "new", `{"command":"a","env":{}}`),
			server("zed", "differs", `{"command":"other"}`),
		}},
		{Servers: []Server{server("cline", "new", `{"command":"b"}`), server("cline", "new-cline", `{"command":"c"}`)}},
	}
	own := []config.Entry{
		{Name: "same", Server: json.RawMessage(`{"command":"s"}`)},
		{Name: "differs", Server: json.RawMessage(`{"command":"d","args":["1"]}`)},
		{Name: "remote", Server: json.RawMessage(`{"url":"https://r.example.com"}`)},
	}
	var got []string
	for _, c := range Compare(found, own) {
		got = append(got, fmt.Sprintf("%s %s %s as %s %v +%d", c.File.Client, c.Name, c.State, c.As, c.Keys, len(c.Also)))
	}
	want := []string{
		"cursor new new as new [] +1",
		"cursor same same as same [] +0",
		"cursor differs differs as differs [args cwd] +0",
		"cursor renamed same as remote [] +0",
		"cursor junctor self as junctor [] +0",
		"cursor hub self as hub [] +0",
		"cursor web self as web [] +0",
		"cursor null new as null [] +0",
		"zed differs new as differs-zed [] +0",
		"cline new new as new-cline [] +0",
		"cline new-cline new as new-cline-cline [] +0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestUseVariables(t *testing.T) {
	find := func(name, raw string) Server {
		return Server{Name: name, JSON: json.RawMessage(raw), Secrets: findSecrets(name, json.RawMessage(raw))}
	}
	servers := []Server{
		find("one", `{"command":"x","args":["--api-key","secret-one","-e","TOKEN=secret-two","--header","Authorization: Bearer secret-three","https://h.example.com/?key=secret-four"],"env":{"API_KEY":"secret-five","PLAIN":"x"}}`),
		find("two", `{"url":"https://h.example.com/?apiKey=secret-six&a=b","headers":{"Authorization":"Bearer secret-seven","X-Api-Key":"secret-eight"},"authorization_token":"secret-nine","oauth":{"clientId":"i","clientSecret":"secret-ten"}}`),
		find("three", `{"command":"x","env":{"API_KEY":"secret-eleven","SHARED_TOKEN":"secret-twelve"}}`),
		find("four", `{"command":"x","env":{"SHARED_TOKEN":"secret-twelve","TAKEN_TOKEN":"secret-thirteen"}}`),
	}
	taken := func(name string) (string, bool) { return "other", name == "TAKEN_TOKEN" }
	out, vars, err := UseVariables(servers, taken)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`{"command":"x","args":["--api-key","${ONE_API_KEY}","-e","TOKEN=${TOKEN}","--header","Authorization: Bearer ${ONE_TOKEN}","https://h.example.com/?key=${ONE_KEY}"],"env":{"API_KEY":"${API_KEY}","PLAIN":"x"}}`,
		`{"url":"https://h.example.com/?apiKey=${TWO_APIKEY}&a=b","headers":{"Authorization":"Bearer ${TWO_TOKEN}","X-Api-Key":"${TWO_API_KEY}"},"authorization_token":"${TWO_TOKEN_2}","oauth":{"clientId":"i","clientSecret":"${TWO_CLIENT_SECRET}"}}`,
		`{"command":"x","env":{"API_KEY":"${THREE_API_KEY}","SHARED_TOKEN":"${SHARED_TOKEN}"}}`,
		`{"command":"x","env":{"SHARED_TOKEN":"${SHARED_TOKEN}","TAKEN_TOKEN":"${FOUR_TAKEN_TOKEN}"}}`,
	} {
		if string(out[i].JSON) != want {
			t.Errorf("got  %s\nwant %s", out[i].JSON, want)
		}
	}
	if len(vars) != 13 || vars["FOUR_TAKEN_TOKEN"].Reveal() != "secret-thirteen" {
		t.Errorf("variables: %d", len(vars))
	}
	if strings.Contains(string(servers[0].JSON), "${") {
		t.Error("the servers that were handed in changed")
	}
	// Everything that was secret comes back through .env.
	env, err := AddDotenv([]byte("OLD=1"), vars)
	if err != nil {
		t.Fatal(err)
	}
	back, err := config.ParseDotenv(".env", env)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range vars {
		if back[name] != value.Reveal() {
			t.Errorf("%s = %q", name, back[name])
		}
	}
	// Printing a finding must not show the secret.
	raw, _ := json.Marshal(servers)
	if text := fmt.Sprintf("%s %+v %#v %v", raw, servers[0].Secrets, servers[0].Secrets, servers); strings.Contains(text, "secret-one") {
		t.Errorf("shown: %s", text)
	}
}

func TestUseVariablesGone(t *testing.T) {
	s := Server{Name: "a", JSON: json.RawMessage(`{}`), Secrets: []Secret{{Key: "env.A", Variable: "A", value: "x", path: []string{"env", "A"}}}}
	if _, _, err := UseVariables([]Server{s}, nil); err == nil {
		t.Error("no error for a secret that is gone")
	}
}

func TestAddDotenv(t *testing.T) {
	got, err := AddDotenv([]byte("# mine\nA=1\n"), map[string]telemetry.Secret{"A": "2", "B": "q\"u$o\\t\ne"})
	if want := "# mine\nA=1\nB=\"q\\\"u\\$o\\\\t\\ne\"\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := AddDotenv([]byte("not a line\n"), nil); err == nil {
		t.Error("a broken .env was taken")
	}
}

// TestConnect connects every client in both ways, in every scope it has,
// with and without a file, and undoes it.
func TestConnect(t *testing.T) {
	existing := map[Format]map[string]string{
		JSON: {
			"mcpServers":      "{\n  // mine\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"files\": { \"command\": \"npx\", \"args\": [\"fs\"] } // keep\n  },\n}\n",
			"servers":         "{\n\t\"inputs\": [],\n\t\"servers\": {\n\t\t\"files\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"npx\"\n\t\t}\n\t}\n}",
			"context_servers": "// Zed settings\n{\n  \"context_servers\": {},\n  \"vim_mode\": true\n}\n",
		},
		TOML: {"mcp_servers": "model = \"gpt-5\"\n\n# files\n[mcp_servers.files]\ncommand = \"npx\"\n\n[mcp_servers.files.env]\nA = \"b\"\n\n[tui]\ntheme = \"x\"\n"},
	}
	var report strings.Builder
	for _, c := range Known() {
		for _, scope := range []Scope{User, Project} {
			for _, url := range []string{"", "http://127.0.0.1:8787/mcp"} {
				for _, fresh := range []bool{true, false} {
					dir := t.TempDir()
					m := machine(dir)
					want := Connection{Command: "/usr/bin/junctor", Args: []string{"mcp"}, URL: url, Scope: scope}
					f, err := c.target(m, scope)
					if err != nil {
						continue
					}
					before := ""
					if !fresh {
						before = existing[f.Format][f.keys[len(f.keys)-1]]
						write(t, f.Path, before)
					}
					change, err := c.Connect(m, want)
					if url != "" && !c.TakesURL() {
						if err == nil || !strings.Contains(err.Error(), "takes no address") {
							t.Errorf("%s took a URL: %v", c.ID, err)
						}
						continue
					}
					if err != nil {
						t.Errorf("%s: %v", c.ID, err)
						continue
					}
					if fresh {
						if _, err := os.Stat(f.Path); err == nil {
							t.Errorf("%s: written before Apply", c.ID)
						}
					}
					if err := change.Apply(); err != nil {
						t.Fatal(err)
					}
					after, err := os.ReadFile(f.Path)
					if err != nil {
						t.Fatal(err)
					}
					kind := "stdio"
					if url != "" {
						kind = "url"
					}
					fmt.Fprintf(&report, "== %s, %s, %s, new file: %v ==\n%s\n", c.ID, scope, kind, fresh, after)
					if fresh != (change.Backup == "") {
						t.Errorf("%s: backup %q", c.ID, change.Backup)
					}
					// A second time changes nothing.
					again, err := c.Connect(m, want)
					if err != nil || again.Changes() {
						t.Errorf("%s: connecting twice: %v, %s", c.ID, err, again.After)
					}
					// It is found, and known to be Junctor itself.
					self := false
					for _, cand := range Compare(Discover(m, c), nil) {
						self = self || cand.Name == "junctor" && cand.State == Self
					}
					if !self {
						t.Errorf("%s: what was written is not read back:\n%s", c.ID, after)
					}
					undo, err := c.Undo(m, scope, "")
					if err != nil {
						t.Fatal(c.ID, err)
					}
					if err := undo.Apply(); err != nil {
						t.Fatal(err)
					}
					left, _ := os.ReadFile(f.Path)
					if !fresh && string(left) != before {
						t.Errorf("%s: undone to:\n%s\nwant:\n%s", c.ID, left, before)
					}
					if bytes.Contains(left, []byte("junctor\"")) {
						t.Errorf("%s: left behind: %s", c.ID, left)
					}
					if _, err := os.Stat(f.Path + backupSuffix); err == nil {
						t.Errorf("%s: the copy is left behind", c.ID)
					}
				}
			}
		}
	}
	golden(t, filepath.Join("testdata", "connect.txt"), report.String())
}

// TestConnectReplace moves the servers out and, undone, puts them back, also
// when the user has changed other things since.
func TestConnectReplace(t *testing.T) {
	for _, tt := range []struct{ client, before, addition, changed string }{
		{"cursor", "{\n  \"mcpServers\": {\n    // files\n    \"files\": { \"command\": \"npx\" },\n    \"web\": { \"url\": \"https://w.example.com\" }\n  }\n}\n", "", ""},
		{"codex", "# top\nmodel = \"m\"\n\n# files\n[mcp_servers.files]\ncommand = \"npx\"\n[mcp_servers.files.env]\nA = \"b\"\n\n[mcp_servers.web]\nurl = \"https://w.example.com\"\n", "", ""},
	} {
		t.Run(tt.client, func(t *testing.T) {
			m := machine(t.TempDir())
			c, err := Lookup(tt.client)
			if err != nil {
				t.Fatal(err)
			}
			f, err := c.target(m, User)
			if err != nil {
				t.Fatal(err)
			}
			write(t, f.Path, tt.before)
			change, err := c.Connect(m, Connection{Command: "junctor", Args: []string{"mcp"}, Replace: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(change.Moved) != 2 || change.Moved[0].Name != "files" {
				t.Errorf("moved %+v", change.Moved)
			}
			if err := change.Apply(); err != nil {
				t.Fatal(err)
			}
			found := Discover(m, c)
			if len(found) != 1 || len(found[0].Servers) != 1 || found[0].Servers[0].Name != "junctor" {
				t.Fatalf("left: %s", describe(found))
			}
			// The user goes on working with the file.
			text, _ := os.ReadFile(f.Path)
			if f.Format == TOML {
				write(t, f.Path, "approval = \"never\"\n"+string(text))
			} else {
				write(t, f.Path, strings.Replace(string(text), "{\n", "{\n  \"new\": true,\n", 1))
			}
			undo, err := c.Undo(m, User, "junctor")
			if err != nil {
				t.Fatal(err)
			}
			if err := undo.Apply(); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range Discover(m, c)[0].Servers {
				names = append(names, s.Name)
			}
			slices.Sort(names)
			after, _ := os.ReadFile(f.Path)
			if !slices.Equal(names, []string{"files", "web"}) || !strings.Contains(string(after), "approval") && !strings.Contains(string(after), "new") {
				t.Errorf("undone to:\n%s", after)
			}
		})
	}
}

func TestConnectErrors(t *testing.T) {
	m := machine(t.TempDir())
	cursor, _ := Lookup("cursor")
	codex, _ := Lookup("codex")
	windsurf, _ := Lookup("windsurf")
	run := Connection{Command: "junctor"}
	if _, err := cursor.Connect(m, Connection{}); err == nil {
		t.Error("connected to nothing")
	}
	if _, err := windsurf.Connect(m, Connection{Command: "x", Scope: Project}); err == nil || !strings.Contains(err.Error(), "scope") {
		t.Error(err)
	}
	if _, err := windsurf.Undo(m, Project, ""); err == nil {
		t.Error("undid in a scope that is not there")
	}
	if _, err := cursor.Undo(m, User, ""); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Error(err)
	}
	f, _ := cursor.target(m, User)
	write(t, f.Path, "{ broken")
	if _, err := cursor.Connect(m, run); err == nil {
		t.Error("wrote into a broken file")
	}
	if _, err := cursor.Connect(m, Connection{Command: "x", Replace: true}); err == nil {
		t.Error("moved out of a broken file")
	}
	if _, err := cursor.Undo(m, User, ""); err == nil {
		t.Error("undid in a broken file")
	}
	// The file changes between the question and the answer.
	write(t, f.Path, "{}")
	change, err := cursor.Connect(m, run)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.Path, `{"a":1}`)
	if err := change.Apply(); err == nil || !strings.Contains(err.Error(), "meantime") {
		t.Error(err)
	}
	// The oldest copy is what the user had.
	write(t, f.Path, `{"first":1}`)
	for _, args := range []string{"a", "b"} {
		change, err := cursor.Connect(m, Connection{Command: "junctor", Args: []string{args}})
		if err != nil {
			t.Fatal(err)
		}
		if err := change.Apply(); err != nil {
			t.Fatal(err)
		}
	}
	if data, _ := os.ReadFile(f.Path + backupSuffix); string(data) != `{"first":1}` {
		t.Errorf("the copy is %s", data)
	}
	// A folder in place of the file.
	g, _ := windsurf.target(m, User)
	if err := os.MkdirAll(g.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := windsurf.Connect(m, run); err == nil {
		t.Error("connected to a folder")
	}
	if _, err := windsurf.Undo(m, User, ""); err == nil {
		t.Error("undid in a folder")
	}
	if found := Discover(m, windsurf); len(found) != 1 || found[0].Err == nil {
		t.Errorf("a folder was read: %+v", found)
	}
	h, _ := codex.target(m, User)
	for _, text := range []string{"not toml =", "[mcp_servers]\njunctor = { command = \"x\" }\n", "mcp_servers = { junctor = { command = \"x\" } }\n"} {
		write(t, h.Path, text)
		if _, err := codex.Connect(m, run); err == nil {
			t.Errorf("wrote into %q", text)
		}
	}
}

func FuzzTOML(f *testing.F) {
	f.Add("a = 1\n[mcp_servers.x]\ncommand = \"y\"\n# c\n[mcp_servers.x.env]\nA = 'b'\n[z]\n", "x")
	f.Add("[mcp_servers.\"a b\"]\r\nurl = \"u\"\r\n", "a b")
	f.Add("", "n")
	f.Fuzz(func(t *testing.T, text, name string) {
		out, err := setTOML([]byte(text), "mcp_servers", name, entry{{"command", "c"}, {"args", []string{name, "\x7f\u2028"}}})
		if err != nil {
			return
		}
		raw, err := tomlServers(out, "mcp_servers")
		if err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		var have map[string]struct{ Command string }
		if err := json.Unmarshal(raw, &have); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(name) && have[name].Command != "c" {
			t.Fatalf("%q is not in %q: %s", name, out, raw)
		}
	})
}
