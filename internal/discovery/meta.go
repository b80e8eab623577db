package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"junctor/internal/codemode"
	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// metaTools are the tools of the meta view. They are kept short, because they
// take space in a client's context; a test counts their tokens.
const (
	searchTool = `{"name":"search_tools","description":"Find tools, resources and prompts of all servers by what you want to do. Start here. A result shows the parameters (* required), often enough to call execute_tool at once.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"the task in plain words, or a tool's name"},"server":{"type":"string","description":"only this server"},"limit":{"type":"number","description":"default 10"}},"required":["query"]},"annotations":{"readOnlyHint":true}}`
	metaTools  = `{"name":"list_mcp_servers","description":"List the connected MCP servers.","inputSchema":{"type":"object","properties":{},"required":[]},"annotations":{"readOnlyHint":true}},` +
		searchTool + `,` +
		`{"name":"list_tools","description":"List the tools of one server.","inputSchema":{"type":"object","properties":{"server":{"type":"string"},"includeDisabled":{"type":"boolean"}},"required":["server"]},"annotations":{"readOnlyHint":true}},` +
		`{"name":"get_tool_details","description":"Get a tool's full description and JSON Schema, when search_tools did not tell enough.","inputSchema":{"type":"object","properties":{"server":{"type":"string"},"tool":{"type":"string"}},"required":["server","tool"]},"annotations":{"readOnlyHint":true}},` +
		`{"name":"execute_tool","description":"Run a tool that search_tools or list_tools showed; returns its result.","inputSchema":{"type":"object","properties":{"server":{"type":"string"},"tool":{"type":"string"},"arguments":{"type":"object","description":"for the tool, as its signature or schema says"},"select":{"type":"string","description":"jq for the part of the result you need"}},"required":["server","tool","arguments"]},"annotations":{"openWorldHint":true}}`
	runCodeTool = `{"name":"run_code","description":"Run JavaScript or TypeScript, the body of an async function; only what it returns comes back. Make many calls in one script: await tools.SERVER.TOOL(args) or tools.call('server:tool', args). Also tools.search(query), tools.describe(names) for types, store.get(key) and store.set(key, value) between scripts, console.log, sleep(ms). Errors of tools are thrown with code and message.","inputSchema":{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]},"annotations":{"openWorldHint":true}}`
)

// toolList returns the result of tools/list with tools.
func toolList(tools ...string) json.RawMessage {
	return json.RawMessage(`{"tools":[` + strings.Join(tools, ",") + `],"ttlMs":3600000,"cacheScope":"public"}`)
}

// metaView serves the five meta-tools, or the two of code mode.
type metaView struct {
	face *Face
	code bool
}

// tools returns the result of tools/list for the caller, and the names. A
// caller that may not run scripts gets the meta-tools in code mode, too.
func (v *metaView) tools(caller *tool.Caller) (json.RawMessage, []string) {
	scripts := codemode.Permitted(caller)
	switch {
	case v.code && scripts:
		return toolList(searchTool, runCodeTool), []string{"run_code", "search_tools"}
	case v.face.config.Load().Code && scripts:
		return toolList(metaTools, runCodeTool), append(metaNames(), "run_code")
	}
	return toolList(metaTools), metaNames()
}

// argument is a parameter of a meta-tool.
type argument struct {
	name     string
	kind     string
	required bool
	hidden   bool // accepted, but not in the schema
}

type metaTool struct {
	arguments []argument
	run       func(v *metaView, ctx context.Context, r *mcpserver.Request, args map[string]json.RawMessage) (json.RawMessage, error)
}

var (
	argServer = argument{name: "server", kind: "string", required: true}
	argTool   = argument{name: "tool", kind: "string", required: true}
)

var tools = map[string]metaTool{
	"list_mcp_servers": {nil, (*metaView).listServers},
	"search_tools":     {[]argument{{name: "query", kind: "string", required: true}, {name: "server", kind: "string"}, {name: "limit", kind: "number"}}, (*metaView).searchTools},
	"list_tools":       {[]argument{argServer, {name: "includeDisabled", kind: "boolean"}, {name: "cursor", kind: "string", hidden: true}}, (*metaView).listTools},
	"get_tool_details": {[]argument{argServer, argTool}, (*metaView).toolDetails},
	"execute_tool":     {[]argument{argServer, argTool, {name: "arguments", kind: "object"}, {name: "select", kind: "string"}}, (*metaView).executeTool},
	"run_code":         {[]argument{{name: "code", kind: "string", required: true}}, (*metaView).runCode},
}

// Describe implements mcpserver.Handler.
func (v *metaView) Describe(_ context.Context, r *mcpserver.Request) (mcpserver.Description, error) {
	how := metaInstructions
	if v.code && codemode.Permitted(&r.Caller) {
		how = codeInstructions
	}
	return mcpserver.Description{
		Info:         v.face.info,
		Capabilities: v.face.tasksIn(`{"completions":{},"logging":{},"tools":{}}`, r),
		Instructions: v.face.overview(&r.Caller, how),
		TTL:          time.Minute,
	}, nil
}

// Notified implements mcpserver.Handler. Notifications of clients are ignored.
func (v *metaView) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

// Serve implements mcpserver.Handler.
func (v *metaView) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch r.Method {
	case mcp.MethodToolsList:
		list, _ := v.tools(&r.Caller)
		return list, nil
	case mcp.MethodToolsCall:
		return v.call(ctx, r)
	}
	return v.face.serveCommon(ctx, r)
}

// serveCommon serves the methods that the direct and meta views share.
func (f *Face) serveCommon(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch {
	case r.Method == mcp.MethodComplete: // in the meta view for items found with search_tools
		return f.view.complete(ctx, r)
	case r.Method == mcp.MethodSetLevel:
		return setLevel(r)
	case strings.HasPrefix(r.Method, "tasks/"):
		return f.serveTasks(ctx, r)
	}
	return nil, noMethod(r.Method)
}

func noMethod(method string) error {
	return &tool.Error{Kind: tool.MethodNotFound, Msg: fmt.Sprintf("method %s is not served here", method)}
}

// setLevel accepts a log level. The session stores and applies it.
func setLevel(r *mcpserver.Request) (json.RawMessage, error) {
	if !mcp.ValidLogLevel(rawjson.FieldString(r.Params, "level")) {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "level must be one of debug, info, notice, warning, error, critical, alert, emergency"}
	}
	return json.RawMessage(`{}`), nil
}

// call runs a meta-tool. Failures are returned as results that a model can
// read; only an unknown meta-tool is a protocol error.
func (v *metaView) call(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	name := r.Name()
	t, ok := tools[name]
	if _, names := v.tools(&r.Caller); !ok || !slices.Contains(names, name) {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q; the tools are %s. To run a tool of a server, call execute_tool", name, strings.Join(names, ", "))}
	}
	args, err := readArguments(name, t.arguments, r.Arguments())
	if err != nil {
		return errorResult(err, tool.Name{Tool: name}), nil
	}
	result, err := t.run(v, ctx, r, args)
	if err == nil {
		return result, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	if name == "run_code" {
		return errorResult(err, tool.Name{Tool: name}), nil
	}
	called := tool.Name{Server: rawjson.FieldString(args["server"]), Tool: rawjson.FieldString(args["tool"])}
	if tool.KindOf(err) == tool.UpstreamAuthRequired {
		err = v.face.signInError(ctx, r, called.Server, err)
	}
	return signIn(r, err, called)
}

func metaNames() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(tools)), func(name string) bool { return name == "run_code" })
}

// readArguments parses the arguments of a meta-tool. Its error lists all
// problems.
func readArguments(name string, want []argument, raw json.RawMessage) (map[string]json.RawMessage, error) {
	got := map[string]json.RawMessage{}
	if len(raw) > 0 && string(raw) != "null" {
		if raw[0] != '{' {
			return nil, invalid(name, want, []string{"the arguments must be an object"})
		}
		for key, value := range rawjson.Members(raw) {
			if string(value) != "null" {
				got[key] = value
			}
		}
	}
	var wrong []string
	for _, a := range want {
		value, ok := got[a.name]
		switch {
		case !ok && a.required:
			wrong = append(wrong, a.name+" is missing")
		case ok && a.kind != "string" && value[0] == '"': // models may quote values of any type
			inner := json.RawMessage(strings.TrimSpace(rawjson.FieldString(value)))
			if !json.Valid(inner) || !fits(a.kind, inner) {
				wrong = append(wrong, a.name+" must be "+article(a.kind))
				continue
			}
			got[a.name] = inner
		case ok && !fits(a.kind, value):
			wrong = append(wrong, a.name+" must be "+article(a.kind))
		case ok && a.required && a.kind == "string" && strings.TrimSpace(rawjson.FieldString(value)) == "":
			wrong = append(wrong, a.name+" is empty")
		}
	}
	for key := range got {
		if !slices.ContainsFunc(want, func(a argument) bool { return a.name == key }) {
			wrong = append(wrong, fmt.Sprintf("%q is not one of its arguments", tool.Shorten(key, 40)))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return nil, invalid(name, want, wrong)
	}
	return got, nil
}

func invalid(name string, want []argument, wrong []string) error {
	takes := "no arguments"
	if len(want) > 0 {
		var names []string
		for _, a := range want {
			switch {
			case a.hidden:
			case a.required:
				names = append(names, a.name+"*")
			default:
				names = append(names, a.name)
			}
		}
		takes = strings.Join(names, ", ") + " (* required)"
	}
	return &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("%s: %s. It takes %s", name, strings.Join(wrong, "; "), takes)}
}

func article(kind string) string {
	if kind == "object" {
		return "an object"
	}
	return "a " + kind
}

func fits(kind string, value json.RawMessage) bool {
	switch c := value[0]; kind {
	case "string":
		return c == '"'
	case "boolean":
		return c == 't' || c == 'f'
	case "object":
		return c == '{'
	default:
		return c == '-' || '0' <= c && c <= '9'
	}
}
