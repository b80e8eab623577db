// Package reserved executes the gateway's own tools under the server name
// junctor that are not part of the built-in server. With them an agent reads
// resources, prompts and results that were too large for one response.
//
// They exist whether or not the built-in server is listed, and a configured
// server of that name does not replace them. Calls of them are recorded like
// other calls.
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
	Group(ctx context.Context, c tool.Call, work func(context.Context, *tool.Call) (tool.Result, error)) (tool.Result, error)
}

// Calls is an Executor with the reserved tools.
type Calls struct {
	Executor
	Results  *results.Cache
	PageSize func() int // bytes of a result in one response
	Items    Items      // nil if there are none to read
}

// Items reads the resources and prompts of servers. Both methods return a
// CallToolResult.
type Items interface {
	ReadResource(ctx context.Context, call *tool.Call, uri string) (json.RawMessage, error)
	GetPrompt(ctx context.Context, call *tool.Call, name string, arguments map[string]string) (json.RawMessage, error)
}

// Tool is the definition of a reserved tool.
type Tool struct {
	Name        string
	Description string
	Takes       string // its arguments in one line
	InputSchema json.RawMessage

	handle func(c *Calls, ctx context.Context, call *tool.Call) (json.RawMessage, error)
}

// tools returns the reserved tools.
func tools() []Tool {
	return []Tool{
		{
			ReadResult, "Read on in a result that was too large for one answer.", "id*, offset?: number, select? (* required)",
			json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","description":"of the kept result"},"offset":{"type":"number","description":"the byte to read from"},"select":{"type":"string","description":"jq for the part that you need"}},"required":["id"]}`),
			(*Calls).readResult,
		},
		{
			ReadResource, "Read a resource of a server.", "uri* (* required)",
			json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string","description":"of a resource, or of a template with its variables filled in"}},"required":["uri"]}`),
			(*Calls).readResource,
		},
		{
			GetPrompt, "Render a prompt of a server.", "name* (server__name), arguments?: object of strings (* required)",
			json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"server__name"},"arguments":{"type":"object","additionalProperties":{"type":"string"}}},"required":["name"]}`),
			(*Calls).getPrompt,
		},
	}
}

// Lookup returns a reserved tool.
func Lookup(server, name string) (Tool, bool) {
	if server == Server {
		for _, t := range tools() {
			if t.Name == name {
				return t, true
			}
		}
	}
	return Tool{}, false
}

// Call executes a call.
func (c *Calls) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	name := call.Tool
	if call.Server == "" {
		if server, bare, ok := strings.Cut(call.Tool, ":"); ok && server == Server {
			call.Server, name = server, bare
		}
	}
	own, ok := Lookup(call.Server, name)
	// A caller that sees only one server gets that server's tools, even if it
	// is named junctor.
	if !ok || call.Exchange.Transparent || c.Items == nil && name != ReadResult {
		return c.Executor.Call(ctx, call)
	}
	call.Tool = name
	return c.Executor.Group(ctx, call, func(ctx context.Context, call *tool.Call) (tool.Result, error) {
		raw, err := own.handle(c, ctx, call)
		return tool.Result{Raw: raw}, err
	})
}

// arguments parses the arguments of a call into v, which has fields for all of
// them.
func arguments(call *tool.Call, v any) error {
	if len(call.Arguments) == 0 {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(string(call.Arguments)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return &tool.Error{Kind: tool.InvalidArguments, Err: err, Msg: fmt.Sprintf("the arguments of %s:%s cannot be read: %s. It takes %s", Server, call.Tool, strings.TrimPrefix(err.Error(), "json: "), takes(call))}
	}
	return nil
}

// missing returns the error for a missing argument.
func missing(call *tool.Call, name string) error {
	return &tool.Error{Kind: tool.InvalidArguments, Msg: name + " is missing. It takes " + takes(call)}
}

// takes returns the arguments of the called tool in one line.
func takes(call *tool.Call) string {
	own, _ := Lookup(call.Server, call.Tool)
	return own.Takes
}

func (c *Calls) readResult(ctx context.Context, call *tool.Call) (json.RawMessage, error) {
	var a struct {
		ID     string  `json:"id"`
		Offset float64 `json:"offset"`
		Select string  `json:"select"`
	}
	if err := arguments(call, &a); err != nil {
		return nil, err
	}
	if a.ID == "" {
		return nil, missing(call, "id")
	}
	text, err := c.Results.Read(call.Caller.View(), a.ID)
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
		id = c.Results.Keep(call.Caller.View(), text)
	}
	return results.TextResult(page + fmt.Sprintf("\n[junctor: up to byte %d of %d; go on with {\"id\":%q,\"offset\":%d}]", next, len(text), id, next)), nil
}

func (c *Calls) readResource(ctx context.Context, call *tool.Call) (json.RawMessage, error) {
	var a struct {
		URI string `json:"uri"`
	}
	if err := arguments(call, &a); err != nil {
		return nil, err
	}
	if a.URI == "" {
		return nil, missing(call, "uri")
	}
	return c.Items.ReadResource(ctx, call, a.URI)
}

func (c *Calls) getPrompt(ctx context.Context, call *tool.Call) (json.RawMessage, error) {
	var a struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := arguments(call, &a); err != nil {
		return nil, err
	}
	if a.Name == "" {
		return nil, missing(call, "name")
	}
	return c.Items.GetPrompt(ctx, call, a.Name, a.Arguments)
}

// pageSize returns the size of a page, leaving room for the note in a response.
func (c *Calls) pageSize() int {
	const note = 256
	if size := c.PageSize(); size > 2*note {
		return size - note
	}
	return 64 << 10
}
