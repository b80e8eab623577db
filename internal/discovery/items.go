package discovery

import (
	"context"
	"encoding/json"
	"errors"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// ReadResource returns a resource of any server that the caller may see, as a
// tool result. The URI is a server's own or an alias of the direct view.
func (f *Face) ReadResource(ctx context.Context, call *tool.Call, uri string) (json.RawMessage, error) {
	raw, err := f.view.readResource(ctx, itemRequest(call, mcp.MethodResourcesRead, map[string]any{"uri": uri}))
	if err != nil {
		return nil, itemError(err)
	}
	var blocks []json.RawMessage
	for part := range rawjson.Elements(rawjson.Field(raw, "contents")) {
		if text := rawjson.Field(part, "text"); text != nil {
			blocks = append(blocks, json.RawMessage(`{"type":"text","text":`+string(text)+`}`))
			continue
		}
		blocks = append(blocks, json.RawMessage(`{"type":"resource","resource":`+string(part)+`}`))
	}
	return contentResult(blocks...), nil
}

// GetPrompt returns the content of a prompt's messages as a tool result. name
// is its name in the direct view.
func (f *Face) GetPrompt(ctx context.Context, call *tool.Call, name string, arguments map[string]string) (json.RawMessage, error) {
	raw, err := f.view.getPrompt(ctx, itemRequest(call, mcp.MethodPromptsGet, map[string]any{"name": name, "arguments": arguments}))
	if err != nil {
		return nil, itemError(err)
	}
	var blocks []json.RawMessage
	for message := range rawjson.Elements(rawjson.Field(raw, "messages")) {
		if content := rawjson.Field(message, "content"); content != nil {
			blocks = append(blocks, content)
		}
	}
	return contentResult(blocks...), nil
}

// itemRequest returns a request of the direct view for a call.
func itemRequest(call *tool.Call, method string, params map[string]any) *mcpserver.Request {
	return &mcpserver.Request{Method: method, Params: marshal(params), Caller: call.Caller, Exchange: call.Exchange}
}

// itemError converts a protocol error, such as an unknown resource, to the
// error of a call.
func itemError(err error) error {
	if wire, ok := errors.AsType[*mcp.Error](err); ok {
		return &tool.Error{Kind: tool.InvalidArguments, Msg: wire.Message, Err: err}
	}
	return err
}
