package clients

import (
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

// TestClientFileLocations checks the paths of all clients' files on all three
// systems.
func TestClientFileLocations(t *testing.T) {
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
	if c, _ := Lookup("claude"); c.http != nil {
		t.Error("Claude Desktop takes no URL in its file")
	}
}

// sections splits a golden file at lines such as "-- name --".
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

// TestDiscover reads the real files of each client in testdata.
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

// Every discovered server must be a valid configuration when its variables are
// set.
func TestDiscoveredServersAreValidConfiguration(t *testing.T) {
	paths, _ := filepath.Glob("testdata/discover/*.txt")
	for _, path := range paths {
		names, files := sections(t, path)
		dir := t.TempDir()
		for _, name := range names {
			if name != "want" {
				write(t, filepath.Join(dir, name), strings.ReplaceAll(files[name], "$DIR", dir))
			}
		}
		candidates := slices.DeleteFunc(Compare(Discover(machine(dir)), nil, nil), func(c Candidate) bool {
			// The user must replace this by hand.
			return slices.ContainsFunc(c.Notes, func(n string) bool {
				return strings.Contains(n, "different folder") || strings.Contains(n, "no meaning")
			})
		})
		var edits []config.Edit
		for _, c := range candidates {
			edits = append(edits, config.Set(c.As, c.JSON))
		}
		text, err := config.EditBytes(nil, edits...)
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
			server("cursor", "secret", `{"command":"x","args":["--key","sk-1","a","b"],"env":{"T":"pre-sk-2-mid-sk-3"}}`),
			server("cursor", "secret2", `{"command":"x","env":{"T":"other"}}`),
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
		{Name: "secret", Server: json.RawMessage(`{"command":"x","args":["--key","${K}","a","b"],"env":{"T":"pre-${A}-mid-${B}"}}`)},
		{Name: "secret2", Server: json.RawMessage(`{"command":"x","env":{"T":"pre-${A}"}}`)},
		{Name: "remote", Server: json.RawMessage(`{"url":"https://r.example.com"}`)},
	}
	values := map[string]string{"K": "sk-1", "A": "sk-2", "B": "sk-3"}
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	var got []string
	for _, c := range Compare(found, own, lookup) {
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
		"cursor secret same as secret [] +0",
		"cursor secret2 differs as secret2 [env] +0",
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
	out, vars, err := useVariables(servers, taken)
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
	// Every secret is restored through .env.
	env, err := addDotenv([]byte("OLD=1"), vars)
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
	// Formatting the result must not reveal the secret.
	raw, _ := json.Marshal(servers)
	if text := fmt.Sprintf("%s %+v %#v %v", raw, servers[0].Secrets, servers[0].Secrets, servers); strings.Contains(text, "secret-one") {
		t.Errorf("shown: %s", text)
	}
}

func TestUseVariablesFailsForMissingSecret(t *testing.T) {
	s := Server{Name: "a", JSON: json.RawMessage(`{}`), Secrets: []Secret{{Key: "env.A", Variable: "A", value: "x", path: []string{"env", "A"}}}}
	if _, _, err := useVariables([]Server{s}, nil); err == nil {
		t.Error("no error for a secret that is gone")
	}
}

func TestAddDotenv(t *testing.T) {
	got, err := addDotenv([]byte("# mine\nA=1\n"), map[string]telemetry.Secret{"A": "2", "B": "q\"u$o\\t\ne"})
	if want := "# mine\nA=1\nB=\"q\\\"u\\$o\\\\t\\ne\"\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := addDotenv([]byte("not a line\n"), nil); err == nil {
		t.Error("a broken .env was taken")
	}
}

func TestStarts(t *testing.T) {
	for in, want := range map[string]string{
		`{"command":"npx","args":["-y","@scope/server","/my notes",""]}`:                                                                         `npx -y @scope/server "/my notes" ""`,
		`{"command":"x","args":["--api-key","sekret-value-1234567890","--token=sekret-value-1234567890","postgres://me:hunter2@db/x"]}`:          `x --api-key [redacted] --token=[redacted] [redacted]`,
		`{"command":"npx","args":["mcp-remote","https://h/sse","--header","Authorization: Bearer sekret-value-1234567890"],"env":{"A":"b"}}`:     `npx mcp-remote https://h/sse --header "Authorization: [redacted]"`,
		`{"url":"https://mcp.example.com/mcp?api_key=sekret-value-1234567890&x=1","headers":{"Authorization":"Bearer sekret-value-1234567890"}}`: `https://mcp.example.com/mcp?api_key=[redacted]`,
		`{"url":"https://me:hunter2@mcp.example.com/mcp"}`:                                                                                       `https://me:[redacted]@mcp.example.com/mcp`,
		`{}`: ``,
	} {
		s := Server{Name: "s", JSON: json.RawMessage(in), Secrets: findSecrets("s", json.RawMessage(in))}
		if got := s.Starts(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", in, got, want)
		}
	}
}

func FuzzTOML(f *testing.F) {
	f.Add("a = 1\n[mcp_servers.x]\ncommand = \"y\"\n# c\n[mcp_servers.x.env]\nA = 'b'\n[z]\n", "x")
	f.Add("[mcp_servers.\"a b\"]\r\nurl = \"u\"\r\n", "a b")
	f.Add("", "n")
	f.Add("a = \"\"\"\n[mcp_servers.n]\n\"\"\"\nb = [\n['x']\n]\n", "n")
	f.Fuzz(func(t *testing.T, text, name string) {
		if !utf8.ValidString(name) {
			return
		}
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
		if have[name].Command != "c" {
			t.Fatalf("%q is not in %q: %s", name, out, raw)
		}
		// After removal the text contains only the rest.
		out, err = removeTOML(out, "mcp_servers", name)
		if err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		rest, err := removeTOML([]byte(text), "mcp_servers", name)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if !sameMeaning(File{Format: TOML}, out, rest) && !strings.Contains(text, "nan") { // NaN is not equal to itself
			t.Fatalf("%q became %q", rest, out)
		}
	})
}

func TestSelf(t *testing.T) {
	for in, want := range map[string]bool{
		`{"command":"/usr/bin/junctor","args":["mcp"]}`:                       true,
		`{"command":"C:\\Tools\\Junctor.EXE"}`:                                true,
		`{"command":"C:\\Users\\me\\npm\\junctor.cmd","args":["mcp"]}`:        true,
		`{"command":"npx.cmd","args":["-y","junctor","mcp"]}`:                 true,
		`{"command":"C:\\nodejs\\NPX.CMD","args":["-y","junctor@1.2","mcp"]}`: true,
		`{"command":"cmd","args":["/c","npx","-y","junctor","mcp"]}`:          true,
		`{"command":"cmd.exe","args":["/C","C:\\npm\\junctor.cmd","mcp"]}`:    true,
		`{"command":"cmd","args":["/d","/s","/c","npx","-y","junctor"]}`:      true,
		`{"command":"npx.cmd","args":["-y","junctor-tools"]}`:                 false,
		`{"command":"node","args":["junctor"]}`:                               false,
		`{"command":"npx","args":["-y","files","/home/me/junctor"]}`:          false,
		`{"url":"http://localhost:8787/mcp"}`:                                 true,
		`{"url":"https://example.com/junctor"}`:                               false,
	} {
		if got := (Server{Original: "gateway", JSON: json.RawMessage(in)}).Self(); got != want {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
}
