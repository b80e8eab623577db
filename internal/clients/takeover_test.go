package clients

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"junctor/internal/config"
)

// TestTakeOverImportsServersOfAllClients imports the servers of two clients.
// One of them requires a variable without a value, and one is invalid.
func TestTakeOverImportsServersOfAllClients(t *testing.T) {
	dir := t.TempDir()
	m := machine(dir)
	write(t, m.home(".cursor", "mcp.json"), `{"mcpServers": {
		"plain": {"command": "npx", "args": ["-y", "plain"]},
		"asks": {"command": "npx", "env": {"KEY": "${input:my-key}", "HOME_OF": "${userHome}", "SET": "${env:SET}", "MAY": "${env:MAY:-x}"}},
		"odd": {"command": "${command:pick}"},
		"secret": {"url": "https://x.example.com", "headers": {"Authorization": "Bearer 0123456789abcdef0123456789abcdef"}}
	}}`)
	user := filepath.Join(dir, "own")
	write(t, filepath.Join(user, "junctor", ".env"), "OLD=1\n")
	o := config.Options{UserDir: user, Home: dir, LookupEnv: func(name string) (string, bool) { return "yes", name == "SET" }}
	own, err := Own(o)
	if err != nil {
		t.Fatal(err)
	}
	done, err := TakeOver(o, Compare(Discover(m), own, Variables(o)), false)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"plain", "asks", "secret"}; !slices.Equal(done.Names, want) {
		t.Errorf("took %q, want %q", done.Names, want)
	}
	if want := []string{"MY_KEY"}; !slices.Equal(done.Unset, want) {
		t.Errorf("to be filled in: %q, want %q", done.Unset, want)
	}
	if done.Secrets != 1 || len(done.Refused) != 1 || !strings.Contains(done.Refused[0].Error(), "mcpServers.odd.command: ${command:pick}") {
		t.Errorf("%d secrets, refused %q", done.Secrets, done.Refused)
	}
	if cfg, _, err := config.Load(o); err != nil || len(cfg.Servers) != 3 {
		t.Errorf("what was written does not load: %v", err)
	}
	env := filepath.Join(user, "junctor", ".env")
	text, err := os.ReadFile(env)
	if err != nil || !strings.HasPrefix(string(text), "OLD=1\nMY_KEY=\"\"\n") {
		t.Errorf(".env is %q, %v", text, err)
	}
	if info, err := os.Stat(env); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != fs.FileMode(0o600)) {
		t.Errorf(".env can be read by others: %v, %v", info.Mode(), err)
	}
	// The second time only the invalid server remains.
	own, err = Own(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Compare(Discover(m), own, Variables(o)) {
		if (c.State == New) != (c.Name == "odd") {
			t.Errorf("%s is %s", c.Name, c.State)
		}
	}
}

// Servers whose names are taken by other servers get new names.
func TestImportedServersGetUniqueNames(t *testing.T) {
	own, err := config.Entries("own", []byte(`{"mcpServers": {"a": {"command": "x"}, "a-cursor": {"command": "y"}, "b": {"command": "z"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := machine(t.TempDir())
	write(t, m.home(".cursor", "mcp.json"), `{"mcpServers": {"a": {"command": "other"}, "b": {"command": "z"}, "c": {"command": "w"}}}`)
	var got []string
	for _, c := range RenameConflicts(Compare(Discover(m), own, nil), own) {
		got = append(got, c.As+" "+string(c.State))
	}
	if want := []string{"a-cursor-2 new", "b same", "c new"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Servers that differ only in their token are different and both are kept.
func TestTakeOverKeepsAccountsApart(t *testing.T) {
	dir := t.TempDir()
	m := machine(dir)
	const work, home = "ghp_0123456789abcdef0123456789abcdef0001", "ghp_0123456789abcdef0123456789abcdef0002"
	write(t, m.home(".cursor", "mcp.json"), `{"mcpServers": {
		"github": {"command": "npx", "args": ["-y", "gh"], "env": {"GITHUB_TOKEN": "`+home+`"}},
		"github-home": {"command": "npx", "args": ["-y", "gh"], "env": {"GITHUB_TOKEN": "`+home+`"}}
	}}`)
	user := filepath.Join(dir, "own")
	write(t, filepath.Join(user, "junctor", ".env"), "GITHUB_TOKEN="+work+"\n")
	write(t, filepath.Join(user, "junctor", "junctor.json"), `{"mcpServers": {"github": {"command": "npx", "args": ["-y", "gh"], "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}}}}`)
	o := config.Options{UserDir: user, Home: dir, LookupEnv: func(string) (string, bool) { return "", false }}
	own, err := Own(o)
	if err != nil {
		t.Fatal(err)
	}
	candidates := RenameConflicts(Compare(Discover(m), own, Variables(o)), own)
	if _, err := TakeOver(o, candidates, false); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]int{}
	for _, s := range cfg.Servers {
		tokens[s.Env["GITHUB_TOKEN"].Reveal()]++
	}
	if tokens[work] != 1 || tokens[home] == 0 {
		t.Errorf("servers by token: %v; the account in use or the client's is lost", tokens)
	}
	// After the import, every server of the client is found in Junctor's file.
	if own, err = Own(o); err != nil {
		t.Fatal(err)
	}
	for _, c := range Compare(Discover(m), own, Variables(o)) {
		if c.State != Same {
			t.Errorf("%s is %s after it was imported", c.Name, c.State)
		}
	}
}

// A server that was added after discovery is not replaced.
func TestTakeOverKeepsServersAddedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	m := machine(dir)
	write(t, m.home(".cursor", "mcp.json"), `{"mcpServers": {"a": {"command": "theirs"}, "b": {"command": "theirs"}}}`)
	o := config.Options{UserDir: filepath.Join(dir, "own")}
	found := Compare(Discover(m), nil, Variables(o))
	if _, err := config.Apply(o, config.Set("a", []byte(`{"command":"mine"}`))); err != nil {
		t.Fatal(err)
	}
	done, err := TakeOver(o, found, false)
	if err != nil || !slices.Equal(done.Names, []string{"b"}) || len(done.Refused) != 1 {
		t.Errorf("took %q, refused %q, %v", done.Names, done.Refused, err)
	}
	cfg, _, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := cfg.Server("a"); s.Command != "mine" {
		t.Errorf("the server is %q", s.Command)
	}
}

// No secret of a rejected server is written.
func TestTakeOverWritesNoSecretOfRefusedServers(t *testing.T) {
	dir := t.TempDir()
	m := machine(dir)
	write(t, m.home(".cursor", "mcp.json"), `{"mcpServers": {
		"odd": {"command": "${command:pick}", "env": {"ODD_TOKEN": "ghp_0123456789abcdef0123456789abcdef0001", "KEY": "${input:odd-key}"}},
		"asks": {"command": "x", "env": {"KEY": "${input:my-key}"}}
	}}`)
	o := config.Options{UserDir: filepath.Join(dir, "own")}
	done, err := TakeOver(o, Compare(Discover(m), nil, Variables(o)), false)
	if err != nil || !slices.Equal(done.Names, []string{"asks"}) || len(done.Refused) != 1 || done.Secrets != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "own", "junctor", ".env")); err != nil || string(text) != "MY_KEY=\"\"\n" {
		t.Errorf(".env: %s, %v", text, err)
	}
}
