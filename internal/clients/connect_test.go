package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestConnect connects every client in both ways, in every scope, with and
// without an existing file, and undoes it.
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
		for _, scope := range []Scope{User, Project, Local} {
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
					if url != "" && c.http == nil {
						if err == nil || !strings.Contains(err.Error(), "does not accept an address") {
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
					fmt.Fprintf(&report, "== %s, %s, %s, new file: %v ==\n%s\n", c.ID, scope, kind, fresh, bytes.ReplaceAll(after, []byte(dir), []byte("DIR")))
					if fresh != (change.Backup == "") {
						t.Errorf("%s: backup %q", c.ID, change.Backup)
					}
					// Connecting again changes nothing.
					again, err := c.Connect(m, want)
					if err != nil || again.Changes() {
						t.Errorf("%s: connecting twice: %v, %s", c.ID, err, again.After)
					}
					// The entry is recognized as Junctor itself.
					self := false
					for _, cand := range Compare(Discover(m, c), nil, nil) {
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
					left, err := os.ReadFile(f.Path)
					if fresh && !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s: a file that was not there is left behind: %s, %v", c.ID, left, err)
					}
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

// TestConnectReplace removes the servers and restores them with Undo, even if
// the user has changed other things in between.
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
			// The user edits the file.
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

// TestUndo removes Junctor from files that have changed since, and leaves
// nothing that Connect added.
func TestUndo(t *testing.T) {
	url := Connection{URL: "http://127.0.0.1:9999/mcp", Name: "gate"}
	for name, tt := range map[string]struct {
		client     string
		scope      Scope
		before     string
		connection Connection
		name       string // for Undo
		since      func(string) string
		want       string // "" means that the file is removed
	}{
		"no section before":  {client: "cursor", before: "{\n  \"a\": 1\n}\n", since: swap(`"a": 1`, `"a": 2`), want: "{\n  \"a\": 2\n}\n"},
		"empty section":      {client: "cursor", before: "{\"mcpServers\": {}}", since: swap("{\"mcp", "{\"a\": 1, \"mcp"), want: "{\"a\": 1, \"mcpServers\": {}}"},
		"empty file":         {client: "cursor", before: "\n", want: "\n"},
		"a word added":       {client: "cursor", since: swap("{\n", "// mine\n{\n"), want: "// mine\n{}\n"},
		"a server added":     {client: "cursor", since: swap(`"junctor"`, `"x": {"command": "y"}, "junctor"`), want: "{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"y\"}\n  }\n}\n"},
		"deep":               {client: "claude-code", scope: Local, before: "{\n  \"n\": 1\n}\n", since: swap(`"n": 1`, `"n": 2`), want: "{\n  \"n\": 2\n}\n"},
		"toml":               {client: "codex", before: "a = 1\n", since: swap("a = 1", "a = 2"), want: "a = 2\n"},
		"windows lines":      {client: "codex", before: "a = 1\r\n[b]\r\nc = 2\r\n", want: "a = 1\r\n[b]\r\nc = 2\r\n"},
		"null":               {client: "gemini-cli", before: "{\"mcpServers\":null}", want: "{\"mcpServers\":null}"},
		"header in a string": {client: "codex", before: "a = \"\"\"\n[mcp_servers.junctor]\n\\\"\"\"\n[x]\n\"\"\"\nb = '''\n[y]''''\n", since: swap("a =", "# mine\na ="), want: "# mine\na = \"\"\"\n[mcp_servers.junctor]\n\\\"\"\"\n[x]\n\"\"\"\nb = '''\n[y]''''\n"},
		"header in an array": {client: "codex", before: "a = [ # ]\n [\"]\"],\n ['x']\n]\n", since: swap("a =", "# mine\na ="), want: "# mine\na = [ # ]\n [\"]\"],\n ['x']\n]\n"},
		"another name":       {client: "cursor", before: "{}", connection: Connection{Command: "junctor", Name: "gate"}, want: "{}"},
		"another name's url": {client: "cursor", before: "{}", connection: url, name: "gate", want: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t.TempDir())
			c, err := Lookup(tt.client)
			if err != nil {
				t.Fatal(err)
			}
			f, err := c.target(m, tt.scope)
			if err != nil {
				t.Fatal(err)
			}
			if tt.before != "" {
				write(t, f.Path, tt.before)
			}
			if tt.connection.URL == "" {
				tt.connection.Command, tt.connection.Args = "/opt/junctor", []string{"mcp"}
			}
			tt.connection.Scope = tt.scope
			change, err := c.Connect(m, tt.connection)
			if err != nil {
				t.Fatal(err)
			}
			if err := change.Apply(); err != nil {
				t.Fatal(err)
			}
			if tt.since != nil {
				text, _ := os.ReadFile(f.Path)
				changed := tt.since(string(text))
				if changed == string(text) {
					t.Fatalf("the test changes nothing in %s", text)
				}
				write(t, f.Path, changed)
			}
			undo, err := c.Undo(m, tt.scope, tt.name)
			if err != nil {
				t.Fatal(err)
			}
			if err := undo.Apply(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(f.Path)
			if string(got) != tt.want || tt.want == "" && err == nil {
				t.Errorf("undone to %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	// Without a name, an entry that cannot be identified as Junctor is not
	// removed, and the copy of the old file is kept.
	m := machine(t.TempDir())
	cursor, _ := Lookup("cursor")
	f, _ := cursor.target(m, User)
	write(t, f.Path, "{}")
	change, err := cursor.Connect(m, url)
	if err != nil {
		t.Fatal(err)
	}
	if err := change.Apply(); err != nil {
		t.Fatal(err)
	}
	if undo, err := cursor.Undo(m, User, ""); err != nil || undo.Changes() {
		t.Errorf("guessed: %s, %v", undo.After, err)
	}
}

func swap(old, new string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, new, 1) }
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
	// The file changes between Connect and Apply.
	write(t, f.Path, "{}")
	change, err := cursor.Connect(m, run)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.Path, `{"a":1}`)
	if err := change.Apply(); err == nil || !strings.Contains(err.Error(), "meantime") {
		t.Error(err)
	}
	// The first copy is the user's original.
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
	// A folder at the path of the file.
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

// Removing a server from a TOML file removes its own comments and no others.
func TestSplitTOML(t *testing.T) {
	const server = "[mcp_servers.x]\ncommand = \"c\"\n"
	for name, tt := range map[string]struct{ text, own, rest string }{
		"comment of the next table": {
			"a = 1\n\n# x\n" + server + "\n# colours\n[tui]\nb = 1\n",
			"# x\n" + server + "\n", "a = 1\n\n# colours\n[tui]\nb = 1\n",
		},
		"no blank line":       {server + "# colours\n[tui]\n", server, "# colours\n[tui]\n"},
		"comment of a part":   {server + "# colours\n\n# more\n\n[tui]\n", server + "# colours\n\n", "# more\n\n[tui]\n"},
		"own tables between":  {server + "\n# env\n[mcp_servers.x.env]\nA = \"b\"\n\n# tui\n[tui]\n", server + "\n# env\n[mcp_servers.x.env]\nA = \"b\"\n\n", "# tui\n[tui]\n"},
		"table of an array":   {server + "\n# first\n[[hooks]]\na = 1\n\n[[hooks]]\na = 2\n", server + "\n", "# first\n[[hooks]]\na = 1\n\n[[hooks]]\na = 2\n"},
		"end of the file":     {server + "# last option\n\n# vim: ft=toml\n", server + "# last option\n\n", "# vim: ft=toml\n"},
		"its last comment":    {server + "# args = []\n", server + "# args = []\n", ""},
		"text like a comment": {server + "text = \"\"\"\n\n# not one\"\"\"\n[tui]\n", server + "text = \"\"\"\n\n# not one\"\"\"\n", "[tui]\n"},
		"text above":          {"text = \"\"\"\n# not one\"\"\"\n" + server, server, "text = \"\"\"\n# not one\"\"\"\n"},
		"not there":           {"# a\n[tui]\n", "", "# a\n[tui]\n"},
	} {
		own, rest := splitTOML(tt.text, "mcp_servers", "x")
		if own != tt.own || rest != tt.rest {
			t.Errorf("%s: own %q, rest %q\nwant %q and %q", name, own, rest, tt.own, tt.rest)
		}
	}
}
