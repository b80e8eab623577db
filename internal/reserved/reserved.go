// Package reserved executes the tools that the gateway itself has under the
// server name junctor, beside the built-in server: those with which an agent
// reads what does not fit into a tool call.
//
// They exist whether or not the built-in server is listed, and a configured
// server of that name does not take their place. They are recorded like calls
// of a server.
package reserved

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"junctor/internal/rawjson"
	"junctor/internal/results"
	"junctor/internal/tool"
)

// Server is the name under which the tools are called.
const Server = "junctor"

// The tools.
const (
	ReadResult   = "read_result"
	ReadResource = "read_resource"
	GetPrompt    = "get_prompt"
)

// Executor executes all other calls.
type Executor interface {
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
	Forward(ctx context.Context, r tool.Forward) (json.RawMessage, error)
	Permit(caller *tool.Caller, server, method string) error
	Group(ctx context.Context, c tool.Call, work func(ctx context.Context, id string) (tool.Result, error)) (tool.Result, error)
}

// Calls is an Executor with the reserved tools.
type Calls struct {
	Executor
	Kept     *results.Kept
	PageSize func() int // bytes of a result that one answer has
	Items    Items      // nil when there are none to read
}

// Items are what servers have beside tools. Both return a CallToolResult.
type Items interface {
	ReadResource(ctx context.Context, call *tool.Call, uri string) (json.RawMessage, error)
	GetPrompt(ctx context.Context, call *tool.Call, name string, arguments map[string]string) (json.RawMessage, error)
}

// handlers are the reserved tools.
var handlers = map[string]func(c *Calls, ctx context.Context, call *tool.Call) (json.RawMessage, error){
	ReadResult:   (*Calls).readResult,
	ReadResource: (*Calls).readResource,
	GetPrompt:    (*Calls).getPrompt,
}

// Call executes a call.
func (c *Calls) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	name := call.Tool
	if call.Server == "" {
		if server, bare, ok := strings.Cut(call.Tool, ":"); ok && server == Server {
			call.Server, name = server, bare
		}
	}
	handle, ok := handlers[name]
	if !ok || call.Server != Server || c.Items == nil && name != ReadResult {
		return c.Executor.Call(ctx, call)
	}
	call.Tool = name
	return c.Executor.Group(ctx, call, func(ctx context.Context, _ string) (tool.Result, error) {
		raw, err := handle(c, ctx, &call)
		return tool.Result{Raw: raw}, err
	})
}

// arguments parses the arguments of a call into v, which has fields for all of
// them.
func arguments(call *tool.Call, v any, takes string) error {
	dec := json.NewDecoder(strings.NewReader(string(call.Arguments)))
	dec.DisallowUnknownFields()
	if len(call.Arguments) == 0 {
		return nil
	}
	if err := dec.Decode(v); err != nil {
		return &tool.Error{Kind: tool.InvalidArguments, Err: err, Msg: fmt.Sprintf("the arguments of %s:%s cannot be read: %s. It takes %s", Server, call.Tool, strings.TrimPrefix(err.Error(), "json: "), takes)}
	}
	return nil
}

func (c *Calls) readResult(ctx context.Context, call *tool.Call) (json.RawMessage, error) {
	const takes = "id*, offset?: number, select? (* required)"
	var a struct {
		ID     string  `json:"id"`
		Offset float64 `json:"offset"`
		Select string  `json:"select"`
	}
	if err := arguments(call, &a, takes); err != nil {
		return nil, err
	}
	if a.ID == "" {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "id is missing. It takes " + takes}
	}
	text, err := c.Kept.Read(call.Caller.View(), a.ID)
	if err != nil {
		return nil, err
	}
	id := a.ID
	for _, expression := range []string{a.Select, call.Select} {
		if expression == "" {
			continue
		}
		value := json.RawMessage(text)
		if !rawjson.Valid(value) {
			value, _ = json.Marshal(text)
		}
		selected, err := results.Select(ctx, expression, value)
		if err != nil {
			return nil, err
		}
		text, id = results.Text(selected), ""
	}
	page, next := results.Page(text, int(min(max(a.Offset, 0), 1<<40)), c.pageSize())
	if next == 0 {
		return results.TextResult(page), nil
	}
	if id == "" {
		id = c.Kept.Keep(call.Caller.View(), text)
	}
	return results.TextResult(page + fmt.Sprintf("\n[junctor: up to byte %d of %d; go on with {\"id\":%q,\"offset\":%d}]", next, len(text), id, next)), nil
}

func (c *Calls) readResource(ctx context.Context, call *tool.Call) (json.RawMessage, error) {
	const takes = "uri* (* required)"
	var a struct {
		URI string `json:"uri"`
	}
	if err := arguments(call, &a, takes); err != nil {
		return nil, err
	}
	if a.URI == "" {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "uri is missing. It takes " + takes}
	}
	return c.Items.ReadResource(ctx, call, a.URI)
}

func (c *Calls) getPrompt(ctx context.Context, call *tool.Call) (json.RawMessage, error) {
	const takes = "name* (server__name), arguments?: object of strings (* required)"
	var a struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := arguments(call, &a, takes); err != nil {
		return nil, err
	}
	if a.Name == "" {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "name is missing. It takes " + takes}
	}
	return c.Items.GetPrompt(ctx, call, a.Name, a.Arguments)
}

// pageSize leaves room for the note in an answer.
func (c *Calls) pageSize() int {
	const note = 256
	if size := c.PageSize(); size > 2*note {
		return size - note
	}
	return 64 << 10
}
