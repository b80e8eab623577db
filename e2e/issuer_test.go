package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestGatewayBehindAnIssuer has a gateway that accepts the tokens of a real
// issuer, and an MCP client that has only its address: a second gateway.
// Starting from the first refusal, the client must obtain a token
// automatically.
func TestGatewayBehindAnIssuer(t *testing.T) {
	t.Parallel()
	as := startGuarded(t, 3600)
	home := newHome(t, `{"auth":{"loopback":"key"}}`)
	gw := home.serve()
	as.set("jwt", fmt.Sprintf("%q", gw.url+"/mcp"))
	home.write("junctor.json", fmt.Sprintf(`{"auth":{"loopback":"key","jwt":{"issuer":%q,"audience":%q,"scopes":["mcp:read"],"rules":[{"scopes":["mcp:read"]}]}}}`, as.Issuer, gw.url+"/mcp"))
	const well = "/.well-known/oauth-protected-resource/mcp"
	eventually(t, "the issuer is known", func() bool { code, _ := gw.send("GET", well, ""); return code == http.StatusOK })

	var meta struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	if _, body := gw.send("GET", well, ""); json.Unmarshal([]byte(body), &meta) != nil || meta.Resource != gw.url+"/mcp" || len(meta.Servers) != 1 || meta.Servers[0] != as.Issuer {
		t.Errorf("metadata: %s", body)
	}
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		if code, _ := gw.send("GET", path, ""); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code, body := gw.send("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", code, body)
	}

	client := newHome(t, fmt.Sprintf(`{"mcpServers":{"behind":{"url":%q}}}`, gw.url+"/mcp"))
	config := []string{"--config", client.config}
	client.mustRun([]string{"BROWSER=" + browser(t), "E2E=" + here(t)}, junctor(t), append([]string{"servers", "login", "behind"}, config...)...)
	out := client.mustRun(nil, junctor(t), append([]string{"tools", "call", "behind:execute_tool", "--args", `{"server":"junctor","tool":"calculate","arguments":{"expression":"6*7"}}`}, config...)...)
	if !strings.Contains(out, "42") {
		t.Errorf("the call says %s", out)
	}
	caller := "sub:" + as.Issuer + "|ada"
	eventually(t, "the call log says who called", func() bool {
		return strings.Contains(home.mustRun(nil, junctor(t), "logs", "--json", "--config", home.config), caller)
	})
	eventually(t, "the program's log says who called", func() bool { return strings.Contains(gw.log.String(), caller) })
}
