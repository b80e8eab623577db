package clients

import (
	"fmt"
	"slices"
	"strings"
)

// Client is a supported MCP client.
type Client struct {
	ID      string   // claude-desktop
	Name    string   // Claude Desktop
	Aliases []string // other names on the command line

	files func(Machine) []File
	stdio func(command string, args []string) entry // the client's format for a program
	http  func(url string) entry                    // the client's format for a URL; nil if it accepts none
	style variables
}

// variables is the syntax for variables in a client's file.
type variables int

const (
	literal  variables = iota // none: ${ is literal text
	braces                    // ${VAR} and ${VAR:-default}
	envColon                  // ${env:VAR}, ${workspaceFolder}, ${input:id}
	dollar                    // $VAR and ${VAR}
	secrets                   // ${{ secrets.VAR }}
)

// entry is a server in the format of a client's file, in output order.
type entry []pair

type pair struct {
	key   string
	value any
}

// Scope is the scope of a file.
type Scope string

// The scopes.
const (
	User    Scope = "user"    // for this user, in every project
	Project Scope = "project" // for everyone who works on the project
	Local   Scope = "local"   // for this user in this project
)

// Format is the syntax of a file.
type Format string

// The languages.
const (
	JSON Format = "json"
	TOML Format = "toml"
	YAML Format = "yaml"
)

// File is a file in which a client stores servers.
type File struct {
	Client string `json:"client"`
	Path   string `json:"path"`
	Scope  Scope  `json:"scope"`
	Format Format `json:"format"`

	// keys is the path to the servers in the file.
	keys []string
	// connect is true for the file that connect writes.
	connect bool
}

// Known returns the supported clients, the most common first.
func Known() []Client { return slices.Clone(known) }

// Lookup returns the client with a name or alias. The error for an unknown
// name lists the supported clients.
func Lookup(name string) (Client, error) {
	var ids []string
	for _, c := range known {
		if strings.EqualFold(c.ID, name) || slices.ContainsFunc(c.Aliases, func(a string) bool { return strings.EqualFold(a, name) }) {
			return c, nil
		}
		ids = append(ids, c.ID)
	}
	return Client{}, fmt.Errorf("%q is not a client that Junctor knows; use one of %s", name, strings.Join(ids, ", "))
}

// Files returns the files in which the client looks for servers on this
// machine, whether they exist or not.
func (c Client) Files(m Machine) []File {
	files := c.files(m)
	for i := range files {
		files[i].Client = c.ID
		if files[i].Format == "" {
			files[i].Format = JSON
		}
		if files[i].keys == nil {
			files[i].keys = []string{"mcpServers"}
		}
	}
	return files
}

func plainStdio(command string, args []string) entry {
	return entry{{"command", command}, {"args", args}}
}

func typedStdio(command string, args []string) entry {
	return entry{{"type", "stdio"}, {"command", command}, {"args", args}}
}

func urlUnder(key string) func(string) entry {
	return func(url string) entry { return entry{{key, url}} }
}

func typedURL(typ string) func(string) entry {
	return func(url string) entry { return entry{{"type", typ}, {"url", url}} }
}

// known is the table of clients. To add a client, add an entry here and its
// file to testdata.
var known = []Client{
	{
		ID: "claude-desktop", Name: "Claude Desktop", Aliases: []string{"claude"},
		files: func(m Machine) []File {
			return m.user(m.appData("Claude", "claude_desktop_config.json"))
		},
		stdio: plainStdio, style: literal,
	},
	{
		ID: "claude-code", Name: "Claude Code", Aliases: []string{"claudecode"},
		files: func(m Machine) []File {
			path := m.home(".claude.json")
			if dir := m.env("CLAUDE_CONFIG_DIR"); dir != "" {
				path = m.join(dir, ".claude.json")
			}
			files := m.user(path)
			if m.Project != "" {
				files = append(files, File{Path: path, Scope: Local, keys: []string{"projects", m.Project, "mcpServers"}, connect: true})
			}
			return append(files, m.project(".mcp.json")...)
		},
		stdio: typedStdio, http: typedURL("http"), style: braces,
	},
	{
		ID: "cursor", Name: "Cursor",
		files: func(m Machine) []File {
			return append(m.user(m.home(".cursor", "mcp.json")), m.project(".cursor", "mcp.json")...)
		},
		stdio: plainStdio, http: urlUnder("url"), style: envColon,
	},
	{
		ID: "vscode", Name: "VS Code", Aliases: []string{"code", "vs-code", "copilot"},
		files: func(m Machine) []File {
			var files []File
			for i, app := range []string{"Code", "Code - Insiders", "VSCodium"} {
				files = append(files,
					File{Path: m.appData(app, "User", "mcp.json"), Scope: User, keys: []string{"servers"}, connect: i == 0},
					File{Path: m.appData(app, "User", "settings.json"), Scope: User, keys: []string{"mcp", "servers"}})
			}
			for _, f := range m.project(".vscode", "mcp.json") {
				f.keys = []string{"servers"}
				files = append(files, f)
			}
			return files
		},
		stdio: typedStdio, http: typedURL("http"), style: envColon,
	},
	{
		ID: "windsurf", Name: "Windsurf",
		files: func(m Machine) []File { return m.user(m.home(".codeium", "windsurf", "mcp_config.json")) },
		stdio: plainStdio, http: urlUnder("serverUrl"), style: envColon,
	},
	{
		ID: "gemini-cli", Name: "Gemini CLI", Aliases: []string{"gemini"},
		files: func(m Machine) []File {
			return append(m.user(m.home(".gemini", "settings.json")), m.project(".gemini", "settings.json")...)
		},
		stdio: plainStdio, http: urlUnder("httpUrl"), style: dollar,
	},
	{
		ID: "codex", Name: "Codex",
		files: func(m Machine) []File {
			path := m.home(".codex", "config.toml")
			if dir := m.env("CODEX_HOME"); dir != "" {
				path = m.join(dir, "config.toml")
			}
			files := append(m.user(path), m.project(".codex", "config.toml")...)
			for i := range files {
				files[i].Format, files[i].keys = TOML, []string{"mcp_servers"}
			}
			return files
		},
		stdio: plainStdio, http: urlUnder("url"), style: literal,
	},
	{
		ID: "zed", Name: "Zed",
		files: func(m Machine) []File {
			path := m.join(m.configHome(), "zed", "settings.json")
			switch m.OS {
			case "windows":
				path = m.appData("Zed", "settings.json")
			case "darwin":
				path = m.home(".config", "zed", "settings.json") // also on macOS
			}
			files := append(m.user(path), m.project(".zed", "settings.json")...)
			for i := range files {
				files[i].keys = []string{"context_servers"}
			}
			return files
		},
		stdio: func(command string, args []string) entry {
			return entry{{"source", "custom"}, {"command", command}, {"args", args}, {"env", map[string]string{}}}
		},
		http: urlUnder("url"), style: literal,
	},
	{
		ID: "cline", Name: "Cline",
		files: func(m Machine) []File {
			files := m.user(m.appData("Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json"))
			dir := m.env("CLINE_DIR")
			if dir == "" {
				dir = m.home(".cline", "data")
			}
			return append(files, File{Path: m.join(dir, "settings", "cline_mcp_settings.json"), Scope: User})
		},
		stdio: typedStdio, http: typedURL("streamableHttp"), style: envColon,
	},
	{
		ID: "continue", Name: "Continue",
		files: func(m Machine) []File {
			// Continue reads whole files of servers from its folder, so connect
			// does not have to edit the user's YAML.
			files := []File{
				{Path: m.home(".continue", "mcpServers", "junctor.json"), Scope: User, connect: true},
				{Path: m.home(".continue", "config.yaml"), Scope: User, Format: YAML},
				{Path: m.home(".continue", "config.json"), Scope: User},
				{Path: m.home(".continue", "mcpServers", "*"), Scope: User, Format: YAML},
			}
			for _, f := range m.project(".continue", "mcpServers", "*") {
				f.Format, f.connect = YAML, false
				files = append(files, f)
			}
			return files
		},
		stdio: plainStdio, http: typedURL("streamable-http"), style: secrets,
	},
	{
		ID: "roo-code", Name: "Roo Code", Aliases: []string{"roo"},
		files: func(m Machine) []File {
			return append(m.user(m.appData("Code", "User", "globalStorage", "rooveterinaryinc.roo-cline", "settings", "mcp_settings.json")),
				m.project(".roo", "mcp.json")...)
		},
		stdio: plainStdio, http: typedURL("streamable-http"), style: envColon,
	},
	{
		ID: "lm-studio", Name: "LM Studio", Aliases: []string{"lmstudio"},
		files: func(m Machine) []File { return m.user(m.home(".lmstudio", "mcp.json")) },
		stdio: plainStdio, http: urlUnder("url"), style: literal,
	},
	{
		ID: "kiro", Name: "Kiro",
		files: func(m Machine) []File {
			return append(m.user(m.home(".kiro", "settings", "mcp.json")), m.project(".kiro", "settings", "mcp.json")...)
		},
		stdio: plainStdio, http: urlUnder("url"), style: braces,
	},
}
