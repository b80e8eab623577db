package control

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"junctor/internal/httperr"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// requestMethods are the MCP requests other than calls that the page sends.
var requestMethods = []string{
	mcp.MethodPing, mcp.MethodResourcesList, mcp.MethodTemplatesList, mcp.MethodResourcesRead, mcp.MethodPromptsList, mcp.MethodPromptsGet, mcp.MethodComplete,
}

// listMethods maps the lists that servers need not support to their capability
// and result member.
var listMethods = map[string]struct{ capability, member string }{
	mcp.MethodResourcesList: {"resources", "resources"},
	mcp.MethodTemplatesList: {"resources", "resourceTemplates"},
	mcp.MethodPromptsList:   {"prompts", "prompts"},
}

// request forwards {"method": "prompts/get", "params": {…}} to a server and
// returns {"result": …} with the server's bytes. A list that the server does
// not declare is empty; no request is sent, because it would fail and be
// recorded.
func (c *Control) request(r *http.Request, in struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}) (any, error) {
	if !slices.Contains(requestMethods, in.Method) {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("unsupported method %q; use one of %s", tool.Shorten(in.Method, 60), strings.Join(requestMethods, ", "))}
	}
	if len(in.Params) == 0 {
		in.Params = json.RawMessage(`{}`)
	}
	name := r.PathValue("name")
	caller := tool.CallerFrom(r.Context())
	st, ok := c.Servers.StatusOf(name)
	if !ok || !caller.MaySee(name) {
		return nil, c.Tools.ServerNotFoundError(&caller, name)
	}
	if in.Method == mcp.MethodPing && st.Era == "stateless" { // the stateless era has no ping
		in.Method = mcp.MethodDiscover
	}
	if list, ok := listMethods[in.Method]; ok {
		info, connected := c.Servers.Info(name, caller.ID)
		if connected && rawjson.Field(info.Capabilities, list.capability) == nil {
			return map[string]any{"result": map[string]any{list.member: []any{}}}, nil
		}
	}
	result, err := c.Calls.Forward(r.Context(), tool.Forward{
		RequestID: httperr.RequestID(r.Context()), Face: "control", Caller: caller, Server: name, Method: in.Method, Params: in.Params,
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"result": result}, nil
}
