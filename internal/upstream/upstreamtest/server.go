package upstreamtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
)

// Server is a scripted MCP server.
type Server struct {
	script Script
	server atomic.Pointer[mcpserver.Server]
	conns  atomic.Int64
	calls  atomic.Int64

	mu      sync.Mutex
	extra   int // tools added by the tool change
	numbers map[*mcpserver.Session]int64
	seen    []string // methods of all requests, in order
}

// New returns a server that behaves as the script specifies.
func New(script Script) *Server {
	if script.Name == "" {
		script.Name = "test"
	}
	if script.Version == "" {
		script.Version = "1.0.0"
	}
	if script.Tools == nil {
		script.Tools = Tools()
	}
	s := &Server{script: script, numbers: map[*mcpserver.Session]int64{}}
	s.renew()
	return s
}

// renew replaces the mcpserver.Server, which loses all sessions, and returns
// the old one.
func (s *Server) renew() *mcpserver.Server {
	return s.server.Swap(mcpserver.New(mcpserver.Options{Info: s.info(), DrainTimeout: time.Millisecond}, s))
}

// Connections returns the number of requests for the server's description,
// which each connection and HTTP session makes.
func (s *Server) Connections() int { return int(s.conns.Load()) }

// Calls returns the number of tool calls that were received.
func (s *Server) Calls() int { return int(s.calls.Load()) }

// Seen returns the methods of all received requests, in order.
func (s *Server) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// AddTool adds a tool and sends list_changed to every connection.
func (s *Server) AddTool() {
	s.mu.Lock()
	s.extra++
	s.mu.Unlock()
	s.server.Load().Notify("notifications/tools/list_changed", nil)
}

// Notify sends a notification to every connection.
func (s *Server) Notify(method string, params json.RawMessage) {
	s.server.Load().Notify(method, params)
}

func (s *Server) info() json.RawMessage {
	b, _ := json.Marshal(map[string]string{"name": s.script.Name, "version": s.script.Version})
	return b
}

// Describe implements mcpserver.Handler.
func (s *Server) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	s.conns.Add(1)
	capabilities := map[string]any{"logging": map[string]any{}}
	if !s.script.NoTools {
		capabilities["tools"] = map[string]any{"listChanged": true}
	}
	if s.guidance() != nil {
		capabilities["prompts"] = map[string]any{}
	}
	b, err := json.Marshal(capabilities)
	return mcpserver.Description{Info: s.info(), Capabilities: b, Instructions: s.script.Instructions}, err
}

// Notified implements mcpserver.Handler.
func (s *Server) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

// Serve implements mcpserver.Handler.
func (s *Server) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	s.mu.Lock()
	s.seen = append(s.seen, r.Method)
	s.mu.Unlock()
	if r.Method == s.script.Mute {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	switch r.Method {
	case "tools/list":
		return s.list(r)
	case "tools/call":
		s.calls.Add(1)
		return s.call(ctx, r)
	case "prompts/list":
		if s.guidance() != nil {
			return json.RawMessage(`{"prompts":[{"name":"tool-descriptions"}]}`), nil
		}
	case "prompts/get":
		if g := s.guidance(); g != nil && rawjson.FieldString(r.Params, "name") == "tool-descriptions" {
			return g, nil
		}
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found: " + r.Method}
}

func (s *Server) guidance() json.RawMessage {
	if s.script.GuidanceRaw != nil {
		return s.script.GuidanceRaw
	}
	if s.script.Guidance == "" {
		return nil
	}
	b, _ := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": map[string]string{"type": "text", "text": s.script.Guidance}}}})
	return b
}

func (s *Server) list(r *mcpserver.Request) (json.RawMessage, error) {
	if s.script.NoTools {
		return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found: tools/list"}
	}
	if s.script.ToolsError != "" {
		return nil, &mcp.Error{Code: mcp.CodeInternalError, Message: s.script.ToolsError}
	}
	s.mu.Lock()
	tools := slices.Clone(s.script.Tools)
	for i := range s.extra {
		tools = append(tools, Tool("extra"+strconv.Itoa(i+1), "added later"))
	}
	s.mu.Unlock()
	from, _ := strconv.Atoi(rawjson.FieldString(r.Params, "cursor"))
	page := map[string]any{}
	if size := s.script.PageSize; size > 0 && from+size < len(tools) {
		page["nextCursor"] = strconv.Itoa(from + size)
		tools = tools[from : from+size]
	} else {
		tools = tools[min(from, len(tools)):]
	}
	if s.script.EndlessPages {
		page["nextCursor"] = strconv.Itoa(from + 1)
		tools = s.script.Tools[:1]
	}
	page["tools"] = tools
	return json.Marshal(page)
}

// errDie is the error of the tool die. The link closes the connection instead
// of sending it.
var errDie = errors.New("upstreamtest: die")

func (s *Server) call(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	arguments := rawjson.Field(r.Params, "arguments")
	switch name := rawjson.FieldString(r.Params, "name"); name {
	case "echo":
		return Text(string(arguments)), nil
	case "whoami":
		return Text(strconv.FormatInt(s.number(r), 10)), nil
	case "fail":
		return json.RawMessage(`{"content":[{"type":"text","text":"it failed"}],"isError":true}`), nil
	case "refuse":
		return nil, &mcp.Error{Code: -32000, Message: "refused", Data: json.RawMessage(`{"why":"because"}`)}
	case "progress":
		n, _ := strconv.Atoi(string(rawjson.Field(arguments, "n")))
		token := rawjson.Field(r.Params, "_meta", "progressToken")
		for i := range n {
			if token != nil && r.Exchange.Notify != nil {
				r.Exchange.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"total":%d}`, token, i+1, n))
			}
		}
		return Text("done"), nil
	case "ask":
		return s.ask(ctx, r, "elicitation/create", `{"message":"who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`)
	case "sample":
		return s.ask(ctx, r, "sampling/createMessage", `{"maxTokens":10,"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`)
	case "silent":
		<-ctx.Done()
		return nil, ctx.Err()
	case "die":
		return nil, s.die()
	case "huge":
		n, _ := strconv.Atoi(string(rawjson.Field(arguments, "bytes")))
		return Text(strings.Repeat("x", n)), nil
	case "stray":
		fmt.Println("this line is not a message")
		return Text("done"), nil
	case "change":
		s.AddTool()
		return Text("done"), nil
	case "environ":
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		return Text(dir + "\n" + strings.Join(os.Environ(), "\n")), nil
	case "headers":
		b, err := json.Marshal(r.Header)
		return Text(string(b)), err
	default:
		if strings.HasPrefix(name, "extra") {
			return Text(name), nil
		}
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "unknown tool: " + name}
	}
}

func (s *Server) ask(ctx context.Context, r *mcpserver.Request, method, params string) (json.RawMessage, error) {
	if r.Exchange.Ask == nil {
		return Text("nobody to ask"), nil
	}
	answer, err := r.Exchange.Ask(ctx, method, json.RawMessage(params))
	if err != nil {
		return Text("declined: " + err.Error()), nil
	}
	return Text(string(answer)), nil
}

// number returns a number that is unique to the session, or 0 without a
// session.
func (s *Server) number(r *mcpserver.Request) int64 {
	if r.Session == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.numbers[r.Session]
	if !ok {
		n = int64(len(s.numbers) + 1)
		s.numbers[r.Session] = n
	}
	return n
}

// die ends the process if it is a scripted server. Otherwise the link closes
// the connection when it should send the response.
func (s *Server) die() error {
	if os.Getenv(scriptVar) != "" {
		os.Exit(3)
	}
	return errDie
}
