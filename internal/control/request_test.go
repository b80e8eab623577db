package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// TestRequest checks that only reading requests are forwarded, and only to
// servers that the caller may see.
func TestRequest(t *testing.T) {
	c := newCore(t)
	code, body := c.ask(limited, "POST", "/api/servers/fs/request", "", `{"method":"prompts/list","params":{"cursor":"2"}}`)
	if code != 200 || !strings.Contains(body, `{"result":{"prompts":[]}}`) {
		t.Errorf("prompts/list: %d %s", code, body)
	}
	if c.forwarded.Server != "fs" || c.forwarded.Method != "prompts/list" || string(c.forwarded.Params) != `{"cursor":"2"}` || c.forwarded.Caller.ID != limited.ID {
		t.Errorf("forwarded %+v", c.forwarded)
	}
	for _, tt := range []struct {
		path, body string
		code       int
	}{
		{"/api/servers/git/request", `{"method":"prompts/list"}`, 404},
		{"/api/servers/none/request", `{"method":"prompts/list"}`, 404},
		{"/api/servers/fs/request", `{"method":"tools/call"}`, 400},
		{"/api/servers/fs/request", `{`, 400},
	} {
		if code, body := c.ask(limited, "POST", tt.path, "", tt.body); code != tt.code {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, code, body)
		}
	}
	// A list that the server does not declare is not requested.
	c.info = mcpclient.ServerInfo{Name: "fs", Capabilities: json.RawMessage(`{"tools":{},"resources":{}}`)}
	c.forwarded = tool.Forward{}
	if code, body := c.ask(limited, "POST", "/api/servers/fs/request", "", `{"method":"prompts/list"}`); code != 200 || !strings.Contains(body, `{"result":{"prompts":[]}}`) || c.forwarded.Method != "" {
		t.Errorf("an undeclared list: %d %s, forwarded %q", code, body, c.forwarded.Method)
	}
	if code, _ := c.ask(limited, "POST", "/api/servers/fs/request", "", `{"method":"resources/list"}`); code != 200 || c.forwarded.Method != "resources/list" {
		t.Errorf("a declared list: %d, forwarded %q", code, c.forwarded.Method)
	}
	c.info = mcpclient.ServerInfo{}
	c.editErr = errors.New("the server is gone")
	if code, _ := c.ask(limited, "POST", "/api/servers/fs/request", "", `{"method":"prompts/list"}`); code != 500 {
		t.Errorf("a failure: %d", code)
	}
}

// TestRequestKeepsErrorOfServer checks that the kind and the details that the
// executor gives an error response of a server reach the caller.
func TestRequestKeepsErrorOfServer(t *testing.T) {
	for _, tt := range []struct {
		kind       tool.Kind
		code, http int
	}{
		{tool.InvalidArguments, mcp.CodeInvalidParams, 400},
		{tool.MethodNotFound, mcp.CodeMethodNotFound, 404},
		{tool.UpstreamFailed, -32099, 502},
	} {
		c := newCore(t)
		c.editErr = &tool.Error{
			Kind: tt.kind, Msg: "fs answered with an error: no such prompt", Err: &mcp.Error{Code: tt.code, Message: "no such prompt"},
			Details: map[string]any{"code": tt.code, "data": "x"},
		}
		code, body := c.ask(limited, "POST", "/api/servers/fs/request", "", `{"method":"prompts/get"}`)
		details := fmt.Sprintf(`"details":{"code":%d,"data":"x"}`, tt.code)
		if code != tt.http || !strings.Contains(body, `"code":"`+string(tt.kind)+`"`) || !strings.Contains(body, "fs answered with an error: no such prompt") || !strings.Contains(body, details) {
			t.Errorf("%s: %d %s", tt.kind, code, body)
		}
	}
}
