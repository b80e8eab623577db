package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"junctor/internal/address/addresstest"
	"junctor/internal/mcp"
)

// dialogue is a program that exchanges lines on stdin and stdout.
type dialogue struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	err *strings.Builder
	mu  sync.Mutex
}

func (h *homeFolder) dialogue(env []string, name string, args ...string) *dialogue {
	t := h.t.(*testing.T)
	t.Helper()
	d := &dialogue{t: t, cmd: exec.CommandContext(ctxFor(t), name, args...), err: &strings.Builder{}}
	d.cmd.Env, d.cmd.Dir, d.cmd.Stderr = h.env(env...), here(t), d.err
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewScanner(out)
	d.out.Buffer(nil, 1<<20)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.in.Close(); _ = d.cmd.Wait() })
	return d
}

// ask writes a line, if there is one, and reads the next line as JSON.
func (d *dialogue) ask(line string, into any) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if line != "" {
		if _, err := io.WriteString(d.in, line+"\n"); err != nil {
			d.t.Fatal(err)
		}
	}
	if !d.out.Scan() {
		d.t.Fatalf("%s said nothing more: %v", filepath.Base(d.cmd.Path), d.out.Err())
	}
	if err := json.Unmarshal(d.out.Bytes(), into); err != nil {
		d.t.Fatalf("%s: %v", d.out.Text(), err)
	}
}

// TestWebClients signs four official clients in, with one browser, to a gateway
// that is its own authorization server, runs the official suite against it, and
// revokes the clients.
func TestWebClients(t *testing.T) {
	t.Parallel()
	chromium(t)
	remote, inspector := npm(t, "mcp-remote"), npm(t, "mcp-inspector")
	node, _ := suiteNode(t)
	home := newHome(t, `{"auth":{"loopback":"key","keys":[{"name":"ada","key":"`+bossKey+`"}]}}`)
	gw := home.serve()
	home.write("junctor.json", fmt.Sprintf(`{"builtin":true,"publicUrl":%q,"auth":{"loopback":"key","server":true,"keys":[{"name":"ada","key":"%s"}]}}`, gw.url, bossKey))
	eventually(t, "the authorization server is there", func() bool {
		code, _ := gw.send("GET", "/.well-known/oauth-authorization-server", "")
		return code == http.StatusOK
	})
	person := home.dialogue([]string{"E2E=" + here(t), "KEY=" + bossKey}, node, filepath.Join(here(t), "testdata", "consent.mjs"))
	consent := func(address, name string) string {
		var answer struct {
			URL, Text string
			Wide      bool
			Problems  []string
		}
		person.ask(address, &answer)
		if !strings.Contains(answer.Text, name) || answer.Wide {
			t.Errorf("the page for %s: %+v", name, answer)
		}
		for _, p := range answer.Problems {
			if strings.Contains(p, "Content Security Policy") {
				t.Error(p)
			}
		}
		return answer.URL
	}
	call := &sdk.CallToolParams{Name: "execute_tool", Arguments: map[string]any{"server": "junctor", "tool": "calculate", "arguments": map[string]any{"expression": "6*7"}}}
	ctx := ctxFor(t)

	// The Go SDK. After the revocation the user does not consent again.
	asked := false
	handler, err := sdkauth.NewAuthorizationCodeHandler(&sdkauth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &sdkauth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Go SDK", RedirectURIs: []string{"http://127.0.0.1:9/callback"}, TokenEndpointAuthMethod: "none",
		}},
		RedirectURL: "http://127.0.0.1:9/callback",
		AuthorizationCodeFetcher: func(_ context.Context, args *sdkauth.AuthorizationArgs) (*sdkauth.AuthorizationResult, error) {
			if asked {
				return nil, errors.New("the person refuses")
			}
			asked = true
			to, err := url.Parse(consent(args.URL, "Go SDK"))
			if err != nil {
				return nil, err
			}
			q := to.Query()
			return &sdkauth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	session, err := sdkClient(nil).Connect(ctx, &sdk.StreamableClientTransport{Endpoint: gw.url + "/mcp", OAuthHandler: handler}, &sdk.ClientSessionOptions{ProtocolVersion: mcp.Version20251125})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if r, err := session.CallTool(ctx, call); err != nil || !strings.Contains(textOf(r), "42") {
		t.Errorf("the Go SDK: %+v, %v", r, err)
	}

	// The TypeScript SDK, with a refreshed token.
	ts := home.dialogue(nil, node, filepath.Join(here(t), "testdata", "oauth-client.mjs"), gw.url+"/mcp")
	var open struct{ Open string }
	ts.ask("", &open)
	var result struct {
		First, Second string
		Refreshed     bool
	}
	ts.ask(consent(open.Open, "TypeScript SDK"), &result)
	if !strings.Contains(result.First, "42") || !strings.Contains(result.Second, "42") || !result.Refreshed {
		t.Errorf("the TypeScript SDK: %+v, %s", result, ts.err)
	}

	// mcp-remote, for clients that support only stdio.
	cmd := exec.Command(remote, gw.url+"/mcp", "--allow-http")
	cmd.Env, cmd.Dir = home.env("BROWSER=true"), home.dir
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	printed := regexp.MustCompile(`https?://\S*/oauth/authorize\?\S+`)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if found := printed.FindString(lines.Text()); found != "" {
				go consent(found, "MCP CLI Proxy")
			}
		}
	}()
	bridged, err := sdkClient(nil).Connect(ctx, &sdk.CommandTransport{Command: cmd}, &sdk.ClientSessionOptions{ProtocolVersion: mcp.Version20251125})
	if err != nil {
		t.Fatal(err)
	}
	defer bridged.Close()
	if r, err := bridged.CallTool(ctx, call); err != nil || !strings.Contains(textOf(r), "42") {
		t.Errorf("mcp-remote: %+v, %v", r, err)
	}

	// The inspector.
	inspect := exec.CommandContext(ctx, inspector, "--cli", gw.url+"/mcp", "--transport", "http", "--format", "json", "--connect-timeout", "0", "--callback-url", "http://127.0.0.1:0/oauth/callback",
		"--method", "tools/call", "--tool-name", "execute_tool", "--tool-args-json", `{"server":"junctor","tool":"calculate","arguments":{"expression":"6*7"}}`)
	var inspected strings.Builder
	inspect.Env, inspect.Dir, inspect.Stdout = home.env("BROWSER=true", "MCP_AUTO_OPEN_ENABLED=true", "MCP_INSPECTOR_SECRET_STORE=memory"), home.dir, &inspected
	prompts, err := inspect.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := inspect.Start(); err != nil {
		t.Fatal(err)
	}
	var problems strings.Builder
	for lines := bufio.NewScanner(prompts); lines.Scan(); {
		problems.WriteString(lines.Text() + "\n")
		if found := printed.FindString(lines.Text()); found != "" {
			consent(found, "MCP Inspector")
		}
	}
	if err := inspect.Wait(); err != nil || !strings.Contains(inspected.String(), "42") {
		t.Errorf("the inspector: %v\n%s\n%s", err, inspected.String(), problems.String())
	}

	// The official conformance suite for authorization servers.
	suiteClient := struct {
		ID string `json:"client_id"`
	}{}
	if code, body := gw.send("POST", "/oauth/register", `{"client_name":"Conformance","redirect_uris":["http://127.0.0.1/callback"]}`, "Content-Type", "application/json"); code != http.StatusCreated || json.Unmarshal([]byte(body), &suiteClient) != nil {
		t.Fatal(code, body)
	}
	_, suite := suiteNode(t)
	examined := exec.CommandContext(ctx, node, suite, "authorization", "--url", gw.url, "--client-id", suiteClient.ID, "--resource", gw.url+"/mcp", "-p", strconv.Itoa(addresstest.UnusedPort(t)))
	examined.Env, examined.Dir = home.env(), home.dir
	out, err := examined.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := examined.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	address := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		switch {
		case strings.HasPrefix(lines.Text(), gw.url+"/oauth/authorize?"):
			address = lines.Text()
		case strings.HasPrefix(lines.Text(), "Callback server started"):
			consent(address, "Conformance")
		}
	}
	if err := examined.Wait(); err != nil || !strings.Contains(said.String(), "Total: 3 passed, 0 failed") {
		t.Errorf("the conformance suite: %v\n%s", err, said.String())
	}

	// The call log has both the user and the program; the user revokes the
	// programs.
	eventually(t, "the call log names person and program", func() bool {
		return strings.Contains(home.mustRun(nil, junctor(t), "logs", "--json", "--config", home.config), "ada via Go SDK")
	})
	if out := home.mustRun(nil, junctor(t), "clients", "list", "--config", home.config); strings.Count(out, "ada") != 5 || !strings.Contains(out, "TypeScript SDK") {
		t.Errorf("clients list says %s", out)
	}
	home.mustRun(nil, junctor(t), "clients", "revoke", "--all", "--config", home.config)
	eventually(t, "the Go SDK's session has ended", func() bool {
		_, err := session.CallTool(ctx, call)
		return err != nil
	})
}
