package agentify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"junctor/internal/llm"
	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// codeNoAction is the error code of a task that led to no call, because nothing
// fits or because the model failed.
const codeNoAction = -32000

// toolName is the name of the tool that MCP clients call.
const toolName = "orchestrate_task"

const instructions = "One tool: orchestrate_task takes a request in plain words, and what the user is looking at, picks the one fitting call among all tools, resources and prompts of the connected backends, makes it, and returns its result."

const toolList = `{"tools":[{"name":"` + toolName + `","title":"Orchestrate a task","description":"Do what a plain-words request asks for: the gateway picks the one fitting call among all its backends, makes it and returns the result. Give the context when the request leans on an open file, a folder or a selection. With dryRun it returns the planned call instead of making it.","inputSchema":` + taskSchema + `,"annotations":{"openWorldHint":true}}]}`

// handler serves the clients of a stream, those of the face's own protocol and
// those of MCP.
type handler struct{ face *Face }

// Describe implements mcpserver.Handler. An initialize may configure the gateway.
func (h *handler) Describe(ctx context.Context, r *mcpserver.Request) (mcpserver.Description, error) {
	options := rawjson.Field(r.Params, "initializationOptions")
	if r.Method == mcp.MethodInitialize && len(options) > 0 && string(options) != "null" {
		if h.face.opts.Configure == nil {
			return mcpserver.Description{}, &tool.Error{Kind: tool.InvalidArguments, Msg: "initializationOptions cannot be used with a gateway that also serves other clients"}
		}
		if err := h.face.opts.Configure(ctx, options); err != nil {
			return mcpserver.Description{}, err
		}
	}
	return mcpserver.Description{Info: h.face.info(), Capabilities: json.RawMessage(`{"tools":{}}`), Instructions: instructions, TTL: time.Hour}, nil
}

// Serve implements mcpserver.Handler.
func (h *handler) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch r.Method {
	case methodOrchestrate:
		return h.orchestrate(ctx, r)
	case mcp.MethodToolsList:
		return json.RawMessage(toolList), nil
	case mcp.MethodToolsCall:
		return h.call(ctx, r)
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: fmt.Sprintf("there is no method %q; use %s, or tools/call with %s", tool.Shorten(r.Method, 100), methodOrchestrate, toolName)}
}

// Notified implements mcpserver.Handler.
func (h *handler) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

// orchestrate returns the backend's result unchanged, the plan of a dry run, or
// the complete outcome if the task has Explain set.
func (h *handler) orchestrate(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	t, err := h.face.ParseTask(r.Params)
	if err != nil {
		return nil, err
	}
	out, err := h.face.Do(ctx, t, requestOf(r))
	switch {
	case err != nil:
		return nil, rpcError(err)
	case t.Explain:
		return rawjson.MarshalOrNull(out), nil
	case t.DryRun:
		return rawjson.MarshalOrNull(out.Plan), nil
	}
	return out.Result, nil
}

func requestOf(r *mcpserver.Request) Request {
	return Request{Caller: r.Caller, Meta: r.Meta(), Exchange: r.Exchange}
}

// call handles tools/call. Errors that an agent can act on are returned as tool
// results with isError, as MCP requires.
func (h *handler) call(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	if name := r.Name(); name != toolName {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q; there is one, %s", tool.Shorten(name, 100), toolName)}
	}
	t, err := h.face.ParseTask(r.Arguments())
	if err != nil {
		return failed(err), nil
	}
	out, err := h.face.Do(ctx, t, requestOf(r))
	switch {
	case tool.KindOf(err) == tool.Canceled:
		return nil, err
	case err != nil:
		return failed(err), nil
	case t.Explain:
		return textResult(rawjson.MarshalOrNull(out)), nil
	case t.DryRun:
		return textResult(rawjson.MarshalOrNull(out.Plan)), nil
	}
	return asToolResult(out), nil
}

// failed returns an error as a tool result.
func failed(err error) json.RawMessage {
	e := tool.AsError(err)
	text := e.Msg
	if details := rawjson.MarshalOrNull(e.Details); e.Details != nil {
		text += "\n" + string(details)
	}
	return rawjson.MarshalOrNull(map[string]any{"content": []any{textBlock(text)}, "isError": true})
}

func textBlock(text string) any { return map[string]string{"type": "text", "text": text} }

// textResult returns a JSON value as a tool result.
func textResult(value json.RawMessage) json.RawMessage {
	return rawjson.MarshalOrNull(map[string]any{"content": []any{textBlock(string(value))}, "structuredContent": value})
}

// asToolResult converts a backend's result to a tool result. The result of a
// tool is returned byte for byte. The contents of a resource become embedded
// resources, and the messages of a prompt become content blocks.
func asToolResult(out Outcome) json.RawMessage {
	var content []any
	switch out.Plan.Method {
	case mcp.MethodResourcesRead:
		for item := range rawjson.Elements(rawjson.Field(out.Result, "contents")) {
			content = append(content, map[string]any{"type": "resource", "resource": item})
		}
	case mcp.MethodPromptsGet:
		for m := range rawjson.Elements(rawjson.Field(out.Result, "messages")) {
			block := rawjson.Field(m, "content")
			if rawjson.FieldString(block, "type") == "text" {
				content = append(content, textBlock(rawjson.FieldString(m, "role")+": "+rawjson.FieldString(block, "text")))
			} else {
				content = append(content, block)
			}
		}
	default:
		return out.Result
	}
	if content == nil {
		content = []any{textBlock("(empty)")}
	}
	return rawjson.MarshalOrNull(map[string]any{"content": content})
}

// rpcError converts an error for the face's own protocol. A task that leads to
// no call has one code, whatever the cause. If nothing fits, the error data has
// the query, the reason and the nearest tools.
func rpcError(err error) error {
	e := tool.AsError(err)
	if e.Kind == tool.Canceled {
		return err
	}
	_, modelFailed := errors.AsType[*llm.Error](err)
	wire := mcp.ToolError(e)
	switch {
	case e.Kind == tool.NoAction:
		wire.Data = rawjson.SetField(rawjson.MarshalOrNull(e.Details), rawjson.MarshalOrNull(e.Kind), "code")
	case modelFailed || errors.Is(err, errNoModel):
		wire.Code = codeNoAction
		wire.Message = "no action could be determined: " + strings.TrimSuffix(wire.Message, ".")
	default:
		return err
	}
	return wire
}
