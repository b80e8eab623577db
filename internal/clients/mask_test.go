package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/config"
	"junctor/internal/telemetry"
)

const testPEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"

// TestMask checks that the text of a client's file contains no part of a secret
// that could be read, and is otherwise unchanged.
func TestMask(t *testing.T) {
	zed := File{Format: JSON, keys: []string{"context_servers"}}
	codex := File{Format: TOML, keys: []string{"mcp_servers"}}
	usual := File{Format: JSON, keys: []string{"mcpServers"}}
	for name, tt := range map[string]struct {
		file     File
		in, want string
	}{
		"PEM": {usual, `{"mcpServers":{"a":{"command":"a","env":{"PRIVATE_KEY":"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----\n"}}}}`,
			`{"mcpServers":{"a":{"command":"a","env":{"PRIVATE_KEY":"[redacted]\n"}}}}`},
		"escaped quotes": {usual, `{"mcpServers":{"a":{"command":"a","env":{"PASSWORD":"ab\"cd\\ef\/g\u0026\ud83d\ude00\""}}}}`,
			`{"mcpServers":{"a":{"command":"a","env":{"PASSWORD":"[redacted]"}}}}`},
		"Zed's command": {zed, `{"context_servers":{"a":{"command":{"path":"a","args":["--token","qwertzuiop"],"env":{"API_KEY":"asdfghjkl1"}}}}}`,
			`{"context_servers":{"a":{"command":{"path":"a","args":["--token","[redacted]"],"env":{"API_KEY":"[redacted]"}}}}}`},
		"settings of an extension of Zed": {zed, `{"context_servers":{"a":{"settings":{"brave_api_key":"asdfghjkl1"}}}}`,
			`{"context_servers":{"a":{"settings":{"brave_api_key":"[redacted]"}}}}`},
		"httpUrl": {usual, `{"mcpServers":{"a":{"httpUrl":"https://a.example.com/mcp?token=qwertzuiop&x=1"}}}`,
			`{"mcpServers":{"a":{"httpUrl":"https://a.example.com/mcp?token=[redacted]&x=1"}}}`},
		"serverUrl and environment": {usual, `{"mcpServers":{"a":{"serverUrl":"https://a.example.com/?api_key=qwertzuiop"},"b":{"command":"b","environment":{"TOKEN":"asdfghjkl1"}}}}`,
			`{"mcpServers":{"a":{"serverUrl":"https://a.example.com/?api_key=[redacted]"},"b":{"command":"b","environment":{"TOKEN":"[redacted]"}}}}`},
		"contradicting keys": {usual, `{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"qwertzuiop"},"environment":{"TOKEN":"asdfghjkl1"}}}}`,
			`{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"[redacted]"},"environment":{"TOKEN":"[redacted]"}}}}`},
		"unused key with one secret in another": {usual, `{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"qwertzuiop"},"settings":{"api_key":"qwertzuiop-2"}}}}`,
			`{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"[redacted]"},"settings":{"api_key":"[redacted]"}}}}`},
		"password in a URL": {usual, `{"mcpServers":{"a":{"url":"https://me:qwertzuiop@a.example.com/"}}}`,
			`{"mcpServers":{"a":{"url":"[redacted]"}}}`},
		"password and parameter in a URL": {usual, `{"mcpServers":{"a":{"url":"https://me:asdfghjkl1@a.example.com/?token=qwertzuiop"}}}`,
			`{"mcpServers":{"a":{"url":"[redacted]"}}}`},
		"short secret": {usual, `{"mcpServers":{"a":{"url":"http://127.0.0.1:1111/","headers":{"Authorization":"Bearer 1"}}}}`,
			`{"mcpServers":{"a":{"url":"http://127.0.0.1:1111/","headers":{"Authorization":"[redacted]"}}}}`},
		"one secret in another": {usual, `{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"qwertzuiop","A_TOKEN":"qwertzuiop-2"}}}}`,
			`{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"[redacted]","A_TOKEN":"[redacted]"}}}}`},
		"http_headers of Codex": {codex, "[mcp_servers.a]\nurl = \"https://a.example.com\"\nhttp_headers = { \"Authorization\" = \"Bearer qwertzuiop\", \"X-Api-Key\" = 'as\"dfg\\hjkl1' }\n",
			"[mcp_servers.a]\nurl = \"https://a.example.com\"\nhttp_headers = { \"Authorization\" = \"Bearer [redacted]\", \"X-Api-Key\" = '[redacted]' }\n"},
		"escapes of TOML": {codex, "[mcp_servers.a]\ncommand = \"a\"\n[mcp_servers.a.env]\nTOKEN = \"qw\\U00000065\\u0072\\\"tz\\\\\"\nPRIVATE_KEY = \"\"\"\none-line\r\ntwo-\\\n   line\\nthree\"\"\"\n",
			"[mcp_servers.a]\ncommand = \"a\"\n[mcp_servers.a.env]\nTOKEN = \"[redacted]\"\nPRIVATE_KEY = \"\"\"\n[redacted]\"\"\"\n"},
		"YAML": {File{Format: YAML}, "mcpServers:\n  - name: a\n    command: a\n    env:\n      TOKEN: 'it''s \"mine\"'\n      PASSWORD: \"it's \\\"y\\x6furs\\\"\\e\"\n      SECRET: qwert\n        zuiop\n      PRIVATE_KEY: |\n        " +
			strings.ReplaceAll(strings.TrimSpace(testPEM), "\n", "\n        ") + "\n      LAST: x\n",
			"mcpServers:\n  - name: a\n    command: a\n    env:\n      TOKEN: '[redacted]'\n      PASSWORD: \"[redacted]\"\n      SECRET: [redacted]\n      PRIVATE_KEY: |\n        [redacted]\n      LAST: x\n"},
		"not a secret": {usual, `{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"${TOKEN}","HOME":"/root"}}}}`,
			`{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"${TOKEN}","HOME":"/root"}}}}`},
		"no servers": {usual, `{}`, `{}`},
		"empty":      {usual, ``, ``},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(tt.file.Mask([]byte(tt.in))); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestMaskFileOfJunctor(t *testing.T) {
	dir := t.TempDir()
	text := `{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"qwertz\"uiop\"","PRIVATE_KEY":"-----BEGIN\nxyz\n"}}}}`
	path := filepath.Join(dir, "junctor.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := MaskFile(config.Options{File: path}, []byte(text), nil)
	if want := `{"mcpServers":{"a":{"command":"a","env":{"TOKEN":"[redacted]","PRIVATE_KEY":"[redacted]\n"}}}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

// FuzzMask checks that no encoding of a secret in JSON is shown.
func FuzzMask(f *testing.F) {
	for _, s := range []string{"qwertzuiop", testPEM, `"\"\\n`, `it's\`, "\u2028<&>😀", "a  b\tc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		raw, err := json.Marshal(secret)
		if err != nil || len(strings.TrimSpace(secret)) < minMasked {
			return
		}
		var read string
		if err := json.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		got := mask([]byte(`{"k":`+string(raw)+`}`), []Secret{{value: telemetry.Secret(read)}})
		var shown map[string]string
		if err := json.Unmarshal(got, &shown); err != nil {
			t.Fatalf("%q: %s: %v", secret, got, err)
		}
		if strings.TrimSpace(shown["k"]) != telemetry.Redacted {
			t.Errorf("%q: %s", secret, got)
		}
	})
}
