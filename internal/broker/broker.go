// Package broker is the proxy API: one HTTP endpoint for each upstream that
// allows it. Clients can send any MCP request through it without having the
// upstream's credentials or a session.
//
// The package only translates. The executor runs tools/call and forwards every
// other method, so that rules, limits and the call log apply here, too.
// Results are passed on byte for byte.
package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/httpstream"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Calls executes requests; the executor implements it.
type Calls interface {
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
	Forward(ctx context.Context, r tool.Forward) (json.RawMessage, error)
}

// Target is an upstream as the broker's clients see it.
type Target struct {
	Name           string
	Proxy          bool   // can be reached through the broker
	URL            string // URL of a remote upstream; stdio:COMMAND for a program
	Available      bool   // is connected
	Authorized     bool   // does not require a sign-in now
	HasToken       bool   // a token is configured or stored
	LastAuthorized time.Time
}

// Targets provides the upstreams and a caller's login state.
type Targets interface {
	Target(name, caller string) (Target, bool)
	Targets(caller string) []Target
}

// Options are the settings and dependencies of a Broker.
type Options struct {
	Calls   Calls
	Targets Targets
}

// Broker serves the proxy endpoints.
type Broker struct {
	opts Options

	mu   sync.Mutex
	past map[string]usage // by upstream
}

type usage struct {
	count int64
	last  time.Time
}

// New returns a Broker.
func New(o Options) *Broker {
	return &Broker{opts: o, past: map[string]usage{}}
}

// Routes mounts the endpoints.
func (b *Broker) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/mcp/{name}/proxy", httperr.Handler(b.proxy))
	mux.HandleFunc("GET /api/mcp/{name}/proxy/status", httperr.JSON(b.status))
	mux.HandleFunc("GET /api/connections", httperr.JSON(b.connections))
}

// target returns the upstream in the path, or an error if the caller may not
// see it.
func (b *Broker) target(r *http.Request) (Target, error) {
	name := r.PathValue("name")
	caller := tool.CallerFrom(r.Context())
	t, ok := b.opts.Targets.Target(name, caller.ID)
	if !ok || !caller.MaySee(name) {
		return Target{}, &tool.Error{
			Kind: tool.ServerNotFound, Msg: fmt.Sprintf("MCP server %q not found; GET /api/connections lists them", name),
			Details: map[string]any{"mcpName": name},
		}
	}
	return t, nil
}

func (b *Broker) proxy(w http.ResponseWriter, r *http.Request) error {
	target, err := b.target(r)
	if err != nil {
		return err
	}
	if !target.Proxy {
		return &tool.Error{
			Kind:    tool.ProxyDisabled,
			Msg:     fmt.Sprintf("MCP server %q does not have proxy enabled; set \"proxy\": true for it in the configuration", target.Name),
			Details: map[string]any{"mcpName": target.Name, "proxyEnabled": false},
		}
	}
	req, err := readRequest(r)
	if err != nil {
		return err
	}
	b.count(target.Name)
	format := httpstream.Accepted(r)
	if format == httpstream.None {
		return b.writeResponse(w, r, target.Name, req)
	}
	return b.streamResponse(w, r, format, target.Name, req)
}

// writeResponse responds with one JSON-RPC object.
func (b *Broker) writeResponse(w http.ResponseWriter, r *http.Request, server string, req request) error {
	answer, err := b.forward(r.Context(), server, req, tool.Exchange{})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // the client may have disconnected
	return nil
}

// streamResponse sends the call's notifications as they arrive, and the
// response as the last message.
func (b *Broker) streamResponse(w http.ResponseWriter, r *http.Request, format httpstream.Format, server string, req request) error {
	stream, ctx := httpstream.New(r.Context(), w, format)
	defer stream.End()
	notify := func(method string, params json.RawMessage) {
		stream.Send("message", mcp.AppendMessage(nil, &mcp.Message{Method: method, Params: params}))
	}
	// Servers send progress only for requests with a progress token.
	if rawjson.Field(req.params, "_meta", "progressToken") == nil {
		req.params = rawjson.SetField(object(req.params), json.RawMessage(req.id), "_meta", "progressToken")
	}
	answer, err := b.forward(ctx, server, req, tool.Exchange{Notify: notify})
	switch {
	case err == nil:
		stream.Send("message", answer)
	case stream.Started():
		body, _ := httperr.New(r.Context(), err)
		stream.Send("error", rawjson.MarshalOrNull(body))
	default:
		return err
	}
	return nil
}

// forward sends the request to the upstream and returns the JSON-RPC response.
// An error response of the upstream is a response, too; the error is for
// requests without a response.
func (b *Broker) forward(ctx context.Context, server string, req request, ex tool.Exchange) ([]byte, error) {
	var result json.RawMessage
	var err error
	id, caller := httperr.RequestID(ctx), tool.CallerFrom(ctx)
	if req.method == mcp.MethodToolsCall {
		in := mcp.ReadFields(req.params)
		var r tool.Result
		r, err = b.opts.Calls.Call(ctx, tool.Call{
			RequestID: id, Face: "broker", Origin: tool.ByClient, Caller: caller, Server: server, Tool: rawjson.FieldString(in.Name),
			Arguments: in.Arguments, Meta: in.Meta, Params: object(req.params), Exchange: ex,
		})
		result = r.Raw
	} else {
		result, err = b.opts.Calls.Forward(ctx, tool.Forward{
			RequestID: id, Face: "broker", Caller: caller, Server: server, Method: req.method, Params: req.params, Exchange: ex,
		})
	}
	answer := mcp.Message{ID: req.id, Result: result}
	if err != nil {
		wire, ok := errors.AsType[*mcp.Error](err)
		if !ok {
			return nil, err
		}
		answer.Error = wire
	}
	return mcp.AppendMessage(nil, &answer), nil
}

// request is a client's request.
type request struct {
	id     mcp.ID
	method string
	params json.RawMessage
}

func readRequest(r *http.Request) (request, error) {
	data, err := httperr.ReadBody(r)
	if err != nil {
		return request{}, err
	}
	if err := rawjson.Check(data, mcp.DefaultMaxDepth); err != nil {
		kind := tool.ParseFailed
		if errors.Is(err, rawjson.ErrDepth) {
			kind = tool.InvalidRequest
		}
		return request{}, &tool.Error{Kind: kind, Msg: err.Error()}
	}
	var in struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return request{}, &tool.Error{Kind: tool.InvalidRequest, Msg: `the body is not an MCP request; send {"method": "tools/list", "params": {}}`, Err: err}
		}
		return request{}, &tool.Error{Kind: tool.ParseFailed, Msg: "the body is not valid JSON: " + err.Error()}
	}
	switch {
	case in.Method == "":
		return request{}, &tool.Error{Kind: tool.InvalidRequest, Msg: `"method" is missing; send {"method": "tools/list", "params": {}}`}
	case len(in.Params) > 0 && in.Params[0] != '{' && string(in.Params) != "null":
		return request{}, &tool.Error{Kind: tool.InvalidRequest, Msg: `"params" must be an object`}
	case in.Method == mcp.MethodToolsCall && rawjson.FieldString(in.Params, "name") == "":
		return request{}, &tool.Error{Kind: tool.InvalidRequest, Msg: `"params.name", the name of the tool, is missing or not a string; send {"method": "tools/call", "params": {"name": "…", "arguments": {}}}`}
	case strings.HasPrefix(in.Method, "notifications/"):
		return request{}, &tool.Error{Kind: tool.InvalidRequest, Msg: "the broker forwards only requests; to cancel one, close its connection"}
	case in.Method == mcp.MethodInitialize || in.Method == mcp.MethodDiscover:
		return request{}, &tool.Error{Kind: tool.InvalidRequest, Msg: "the gateway manages the session with the server; send your request without a handshake"}
	}
	id := mcp.ID(bytes.TrimSpace(in.ID))
	if id == "" || id == "null" {
		id = mcp.NumberID(time.Now().UnixMilli())
	} else if c := id[0]; c != '"' && c != '-' && (c < '0' || c > '9') {
		return request{}, &tool.Error{Kind: tool.InvalidRequest, Msg: `"id" must be a string or a number`}
	}
	params := in.Params
	if string(params) == "null" {
		params = nil
	}
	return request{id: id, method: in.Method, params: params}, nil
}

// object returns params, or an empty object if there are none.
func object(params json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		return json.RawMessage("{}")
	}
	return params
}

func (b *Broker) count(server string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.past[server] = usage{b.past[server].count + 1, time.Now().UTC()}
}

func (b *Broker) usage(server string) usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.past[server]
}
