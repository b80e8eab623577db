package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// In the stateless era HTTP headers repeat parts of the body, so that
// intermediaries need not parse it: the method, the name of what is called, and
// the arguments that the tool's schema marks with x-mcp-header.

// mirror adds those headers.
func (c *Client) mirror(h http.Header, m *mcp.Message) {
	if m.Method == "" {
		return
	}
	values := []string{mcp.HeaderValue(m.Method), ""}
	h["Mcp-Method"] = values[:1:1]
	var name string
	switch m.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet:
		name = rawjson.FieldString(rawjson.TrustedField(m.Params, "name"))
	case mcp.MethodResourcesRead:
		name = rawjson.FieldString(rawjson.TrustedField(m.Params, "uri"))
	case mcp.MethodTasksGet, mcp.MethodTasksUpdate, mcp.MethodTasksCancel:
		name = rawjson.FieldString(rawjson.TrustedField(m.Params, "taskId"))
	default:
		return
	}
	values[1] = mcp.HeaderValue(name)
	h["Mcp-Name"] = values[1:]
	if m.Method != mcp.MethodToolsCall {
		return
	}
	schema := c.schema(name)
	if schema == nil || !strings.Contains(string(schema), "x-mcp-header") {
		return
	}
	params, err := mcp.HeaderParams(schema)
	if err != nil {
		return // such a tool should not have been listed
	}
	arguments := rawjson.Field(m.Params, "arguments")
	for _, p := range params {
		if v, ok := mcp.HeaderText(rawjson.Field(arguments, p.Path...)); ok {
			h[http.CanonicalHeaderKey("Mcp-Param-"+p.Header)] = []string{mcp.HeaderValue(v)}
		}
	}
}

// schema returns the input schema of a tool, or nil if it is not known.
func (c *Client) schema(name string) json.RawMessage {
	if learned, ok := c.fetchedSchemas.Load(name); ok {
		return learned.(json.RawMessage)
	}
	if c.opts.InputSchema == nil {
		return nil
	}
	return c.opts.InputSchema(name)
}

// maxPages bounds the pages of a list that are read to find one tool.
const maxPages = 64

// fetchSchema reads the schema of a tool from the server. It reports whether the
// schema is new.
func (c *Client) fetchSchema(ctx context.Context, name string) bool {
	params := json.RawMessage(nil)
	for range maxPages {
		list, err := c.round(ctx, tool.Request{Method: mcp.MethodToolsList}, params)
		if err != nil {
			return false
		}
		for definition := range rawjson.Elements(rawjson.Field(list, "tools")) {
			if rawjson.FieldString(definition, "name") != name {
				continue
			}
			schema := rawjson.Field(definition, "inputSchema")
			if bytes.Equal(schema, c.schema(name)) {
				return false
			}
			c.fetchedSchemas.Store(name, schema)
			return true
		}
		next := rawjson.Field(list, "nextCursor")
		if len(next) == 0 || rawjson.IsNull(next) {
			return false
		}
		params = rawjson.SetField(nil, next, "cursor")
	}
	return false
}
