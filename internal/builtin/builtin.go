// Package builtin is the upstream named junctor that every gateway can offer: a
// few safe tools without prerequisites that run in process, so that Junctor
// works before anything is configured.
//
// It is an MCP server ([Server] is an mcpserver.Handler) and is connected with
// the same protocol as any other. It reads only the clock and the gateway's
// status: no file, no network, no program.
package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Name is the name of the upstream.
const Name = "junctor"

// instructions describe the server to agents.
const instructions = "Small utilities that are always there: the time in any zone, exact arithmetic, text transformations and hashes, and the status of this gateway and its servers."

// Status returns the result of the status tool: any value that marshals to
// JSON. It must not contain secrets.
type Status func(ctx context.Context) any

// MetaCaller is the member of _meta with the id of a call, by which the server
// looks up the caller.
const MetaCaller = "junctor/caller"

// unknownCaller is the caller of a call without a valid id. It sees no server.
var unknownCaller = tool.Caller{ID: "nobody", Name: "nobody", Servers: []string{}}

// Server answers MCP requests for the built-in tools.
type Server struct {
	version string
	status  Status
	callers func(id string) (tool.Caller, bool)
	tools   []builtinTool
	list    json.RawMessage
}

type builtinTool struct {
	definition string // an entry of tools/list
	name       string
	run        func(ctx context.Context, arguments json.RawMessage) (answer, error)
}

// answer is the result of a tool: a text for models, and the same as structured
// content.
type answer struct {
	text  string
	value any
}

// New returns the server. status is called for each call of the status tool;
// callers returns the caller for the id in MetaCaller.
func New(version string, status Status, callers func(id string) (tool.Caller, bool)) *Server {
	s := &Server{version: version, status: status, callers: callers}
	s.tools = []builtinTool{
		{timeDefinition, "time", func(_ context.Context, a json.RawMessage) (answer, error) { return currentTime(time.Now(), a) }},
		{calculateDefinition, "calculate", func(_ context.Context, a json.RawMessage) (answer, error) { return calculate(a) }},
		{textDefinition, "text", func(_ context.Context, a json.RawMessage) (answer, error) { return transform(a) }},
		{statusDefinition, "status", s.gatewayStatus},
	}
	var b bytes.Buffer
	b.WriteString(`{"tools":[`)
	for i, t := range s.tools {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.definition)
	}
	b.WriteString(`]}`)
	s.list = b.Bytes()
	return s
}

// Describe implements mcpserver.Handler.
func (s *Server) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	info, err := json.Marshal(map[string]string{"name": Name, "title": "Junctor", "version": s.version})
	if err != nil {
		return mcpserver.Description{}, err
	}
	return mcpserver.Description{
		Info:         info,
		Capabilities: json.RawMessage(`{"tools":{}}`),
		Instructions: instructions,
		TTL:          time.Hour,
		Public:       true,
	}, nil
}

// Serve answers tools/list and tools/call.
func (s *Server) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch r.Method {
	case mcp.MethodToolsList:
		return s.list, nil
	case mcp.MethodToolsCall:
		caller, ok := s.callers(rawjson.FieldString(r.Params, "_meta", MetaCaller))
		if !ok {
			caller = unknownCaller
		}
		return s.call(tool.WithCaller(ctx, caller), r.Params)
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found: " + r.Method}
}

// Notified implements mcpserver.Handler. Notifications are ignored.
func (s *Server) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

func (s *Server) call(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "params of tools/call: " + err.Error()}
	}
	if len(p.Arguments) == 0 {
		p.Arguments = json.RawMessage(`{}`)
	}
	for _, t := range s.tools {
		if t.name == p.Name {
			return result(t.run(ctx, p.Arguments))
		}
	}
	return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", p.Name)}
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func result(a answer, err error) (json.RawMessage, error) {
	if err != nil {
		return json.Marshal(map[string]any{"content": []textBlock{{"text", err.Error()}}, "isError": true})
	}
	return json.Marshal(struct {
		Content    []textBlock `json:"content"`
		Structured any         `json:"structuredContent"`
	}{[]textBlock{{"text", a.text}}, a.value})
}

const statusDefinition = `{"name":"status","title":"Gateway status","description":"Show the state of this Junctor gateway: its version, and for every connected MCP server whether it is up, how many tools it has, and why it is down.","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`

func (s *Server) gatewayStatus(ctx context.Context, _ json.RawMessage) (answer, error) {
	value := s.status(ctx)
	text, err := json.Marshal(value)
	if err != nil {
		return answer{}, fmt.Errorf("the status cannot be shown: %w", err)
	}
	return answer{string(text), value}, nil
}
