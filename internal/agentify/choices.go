package agentify

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"junctor/internal/catalog"
	"junctor/internal/llm"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/schema"
	"junctor/internal/tool"
)

// ownServer is the server name of the tools that belong to no backend: decline,
// look further, read a resource, get a prompt.
const ownServer = "agentify"

var (
	declineTool  = tool.Name{Server: ownServer, Tool: "decline"}
	furtherTool  = tool.Name{Server: ownServer, Tool: "look_further"}
	resourceTool = tool.Name{Server: ownServer, Tool: "read_resource"}
	promptTool   = tool.Name{Server: ownServer, Tool: "get_prompt"}
)

// isOwn reports whether a name is one of the face's own tools. A backend may
// have the same server name; only its tools with one of these names are not
// offered.
func isOwn(n tool.Name) bool {
	return n == declineTool || n == furtherTool || n == resourceTool || n == promptTool
}

const declineDefinition = `{"name":"decline","description":"Call no backend: when the query is ambiguous, when nothing offered can do it, or when something essential is in neither the query nor the context.","inputSchema":{"type":"object","properties":{"reason":{"type":"string","description":"One sentence for the user: why, and what is missing"}},"required":["reason"]}}`

// choices is what the model may choose from.
type choices struct {
	candidates []Candidate
	further    []Candidate
	extras     []extra
	tools      *llm.Toolset
	guidance   string
	local      func(server string) bool // whether the server's paths are on this machine
}

// Limits of the backends' guidance in the prompt, in bytes.
const (
	maxGuidance      = 4 << 10 // of one backend
	maxGuidanceTotal = 24 << 10
)

// newChoices declares what the model may choose from. room is the budget for
// tool declarations in bytes, of which guidance may have a quarter; mayLook
// lets the model request other tools.
func newChoices(caller *tool.Caller, snap *catalog.Snapshot, offered, further []Candidate, more []extra, room int, mayLook bool) *choices {
	o := &choices{candidates: offered, further: further, extras: more}
	defs := make([]tool.Definition, 0, len(offered)+4)
	for _, c := range offered {
		defs = append(defs, c.entry.Definition)
	}
	own := func(raw string) {
		if d, err := tool.ParseDefinition(ownServer, json.RawMessage(raw)); err == nil { // generated here, so always valid
			defs = append(defs, d)
		}
	}
	if lines := o.lines(func(e extra) bool { return e.kind != aPrompt }); lines != "" {
		own(definition("read_resource", "Read a resource of a backend. A part in braces is to be filled in. There are:\n"+lines,
			`{"backend":{"type":"string"},"uri":{"type":"string"}}`, "backend", "uri"))
	}
	if lines := o.lines(func(e extra) bool { return e.kind == aPrompt }); lines != "" {
		own(definition("get_prompt", "Get a prompt that a backend has prepared. There are:\n"+lines,
			`{"backend":{"type":"string"},"name":{"type":"string"},"arguments":{"type":"object","additionalProperties":{"type":"string"}}}`, "backend", "name"))
	}
	if mayLook {
		own(definition("look_further", "See other tools before choosing: when none of those offered fits, but another may."+o.names(),
			`{"tools":{"type":"array","items":{"type":"string"},"description":"names from the list"},"words":{"type":"string","description":"English search words for tools that are not in the list"}}`))
	}
	own(declineDefinition)
	o.tools = llm.ToolsetOf(defs...)
	o.guidance = guidance(caller, snap, offered, min(maxGuidanceTotal, room/4))
	return o
}

func definition(name, description, properties string, required ...string) string {
	if required == nil {
		required = []string{}
	}
	return string(rawjson.MarshalOrNull(map[string]any{
		"name": name, "description": description,
		"inputSchema": map[string]any{"type": "object", "properties": json.RawMessage(properties), "required": required, "additionalProperties": false},
	}))
}

func (o *choices) lines(which func(extra) bool) string {
	var lines []string
	for _, e := range o.extras {
		if which(e) {
			lines = append(lines, e.line())
		}
	}
	return strings.Join(lines, "\n")
}

// names lists the tools that were not offered, in one line each.
func (o *choices) names() string {
	if len(o.further) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(" There are also:")
	for _, c := range o.further {
		fmt.Fprintf(&b, "\n- %s: %s", c.Name, c.entry.Summary(70))
	}
	return b.String()
}

// guidance returns the backends' guidance for the candidates.
func guidance(caller *tool.Caller, snap *catalog.Snapshot, offered []Candidate, room int) string {
	var b strings.Builder
	var done []string
	for _, c := range offered {
		if slices.Contains(done, c.Name.Server) {
			continue
		}
		done = append(done, c.Name.Server)
		s := snap.Server(c.Name.Server)
		if s == nil {
			continue
		}
		text := strings.TrimSpace(s.GuidanceFor(caller))
		if len(text) > maxGuidance {
			text = strings.ToValidUTF8(text[:maxGuidance], "") + " …"
		}
		if text == "" || b.Len()+len(text) > room {
			continue
		}
		fmt.Fprintf(&b, "## Backend %s\n%s\n\n", s.Name, text)
	}
	return strings.TrimSpace(b.String())
}

// choice is what the model chose: exactly one of the fields is set.
type choice struct {
	plan     *Plan
	declined string
	look     *searchRequest
}

// searchRequest asks for other tools.
type searchRequest struct {
	Tools []string `json:"tools"`
	Words string   `json:"words"`
}

// read parses a reply into a choice, or returns the errors to report to the
// model.
func (o *choices) read(turn llm.Turn, c Context) (choice, []string) {
	calls := turn.Message.Calls()
	if len(calls) > 1 && sameCalls(calls) {
		calls = calls[:1]
	}
	switch {
	case len(calls) > 1:
		return choice{}, []string{fmt.Sprintf("you called %d tools; call exactly one", len(calls))}
	case len(calls) == 0:
		return o.readWithoutCall(turn)
	}
	call := calls[0]
	if call.Malformed != "" {
		return choice{}, []string{fmt.Sprintf("the arguments of %s are not a JSON object: %s", call.Name, tool.Shorten(call.Problem, 200))}
	}
	i := slices.IndexFunc(o.tools.Definitions(), func(d tool.Definition) bool { return d.Name == call.Tool })
	if i < 0 {
		return choice{}, []string{fmt.Sprintf("there is no tool %s; call one of those offered, or %s", tool.Shorten(call.Name, 100), o.tools.Declared(declineTool))}
	}
	switch call.Tool {
	case declineTool:
		return choice{declined: tool.Shorten(rawjson.FieldString(call.Arguments, "reason"), 500)}, nil
	case furtherTool:
		l := &searchRequest{}
		if err := json.Unmarshal(call.Arguments, l); err != nil || len(l.Tools) == 0 && strings.TrimSpace(l.Words) == "" {
			return choice{}, []string{"name tools or give search words"}
		}
		return choice{look: l}, nil
	case resourceTool:
		return o.readResource(call, c)
	case promptTool:
		return o.getPrompt(call, c)
	}
	return o.callTool(call, c)
}

// readWithoutCall interprets a reply without a call.
func (o *choices) readWithoutCall(turn llm.Turn) (choice, []string) {
	switch turn.Stop {
	case llm.StopLength:
		return choice{}, []string{"your answer was cut off because of its length; call one tool with shorter arguments"}
	case llm.StopMalformed:
		return choice{}, []string{"your call could not be read: its arguments must be a JSON object"}
	case llm.StopFilter:
		return choice{declined: "the model refused to answer"}, nil
	}
	if text := strings.TrimSpace(turn.Message.Text()); text != "" {
		return choice{declined: tool.Shorten(text, 500)}, nil
	}
	return choice{declined: "the model chose nothing"}, nil
}

// sameCalls reports whether all calls are equal; some models repeat a call.
func sameCalls(calls []*llm.ToolCall) bool {
	return !slices.ContainsFunc(calls, func(c *llm.ToolCall) bool {
		return c.Name != calls[0].Name || string(c.Arguments) != string(calls[0].Arguments) || c.Malformed != calls[0].Malformed
	})
}

func (o *choices) callTool(call *llm.ToolCall, c Context) (choice, []string) {
	i := slices.IndexFunc(o.candidates, func(c Candidate) bool { return c.Name == call.Tool })
	e := o.candidates[i].entry
	arguments := c.complete(call.Arguments, &e.Definition, o.local(e.Name.Server))
	if s, err := e.Schema(); err == nil { // the backend checks arguments if the schema cannot be compiled
		// An aborted check reports no violations; the executor checks the call
		// again.
		violations, _ := s.Check(context.Background(), arguments)
		if wrong := texts(violations); len(wrong) > 0 {
			return choice{}, wrong
		}
	}
	p := &Plan{
		BackendID: e.Name.Server, Method: mcp.MethodToolsCall, Approval: string(e.Approval), name: e.Name, arguments: arguments,
		Params: rawjson.MarshalOrNull(map[string]any{"name": e.Name.Tool, "arguments": arguments}),
	}
	if e.Approval != catalog.AskApproval {
		p.Approval = ""
	}
	return choice{plan: p}, nil
}

func (o *choices) readResource(call *llm.ToolCall, c Context) (choice, []string) {
	hold := c.placeholders()
	backend, uri := rawjson.FieldString(call.Arguments, "backend"), hold.Replace(rawjson.FieldString(call.Arguments, "uri"))
	for _, e := range o.extras {
		if e.server == backend && e.kind != aPrompt && e.matches(uri) {
			return choice{plan: &Plan{BackendID: backend, Method: mcp.MethodResourcesRead, Params: rawjson.MarshalOrNull(map[string]string{"uri": uri})}}, nil
		}
	}
	return choice{}, []string{fmt.Sprintf("backend %q has no resource %q; choose one of the list", tool.Shorten(backend, 64), tool.Shorten(uri, 200))}
}

func (o *choices) getPrompt(call *llm.ToolCall, c Context) (choice, []string) {
	var in struct {
		Backend, Name string
		Arguments     map[string]string
	}
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return choice{}, []string{"the arguments of a prompt are strings: " + err.Error()}
	}
	i := slices.IndexFunc(o.extras, func(e extra) bool { return e.kind == aPrompt && e.server == in.Backend && e.key == in.Name })
	if i < 0 {
		return choice{}, []string{fmt.Sprintf("backend %q has no prompt %q; choose one of the list", tool.Shorten(in.Backend, 64), tool.Shorten(in.Name, 100))}
	}
	hold := c.placeholders()
	var wrong []string
	for name, value := range in.Arguments {
		if !slices.ContainsFunc(o.extras[i].args, func(a promptArgument) bool { return a.Name == name }) {
			wrong = append(wrong, fmt.Sprintf("the prompt has no argument %q", tool.Shorten(name, 100)))
		}
		in.Arguments[name] = hold.Replace(value)
	}
	for _, a := range o.extras[i].args {
		if _, ok := in.Arguments[a.Name]; a.Required && !ok {
			wrong = append(wrong, fmt.Sprintf("the prompt needs the argument %q", a.Name))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return choice{}, wrong
	}
	params := map[string]any{"name": in.Name}
	if len(in.Arguments) > 0 {
		params["arguments"] = in.Arguments
	}
	return choice{plan: &Plan{BackendID: in.Backend, Method: mcp.MethodPromptsGet, Params: rawjson.MarshalOrNull(params)}}, nil
}

// texts returns the violations as messages to the model: ten at most, and the
// number of the others.
func texts(violations []schema.Violation) []string {
	var list []string
	for i, v := range violations {
		if i == 10 {
			list = append(list, fmt.Sprintf("and %d more", len(violations)-i))
			break
		}
		list = append(list, strings.TrimPrefix("at "+v.Path+": "+v.Message, "at : "))
	}
	return list
}
