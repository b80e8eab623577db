package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"junctor/internal/catalog"
	"junctor/internal/chat/wire"
	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/search"
	"junctor/internal/tool"
)

// metaServer is the server name of the meta-tools, which are declared in place
// of a catalogue that is too large for a prompt. They belong to no upstream. An
// upstream of the same name does not conflict, because its tools are never
// declared together with them.
const metaServer = "tools"

var (
	metaSearch  = tool.Name{Server: metaServer, Tool: "search"}
	metaDetails = tool.Name{Server: metaServer, Tool: "details"}
	metaExecute = tool.Name{Server: metaServer, Tool: "execute"}
)

func metaDefinitions() []tool.Definition {
	var out []tool.Definition
	for _, raw := range []string{
		`{"name":"search","description":"Find tools of all servers by what you want to do. Start here: the tools themselves are not listed. A result shows the parameters (* required), often enough to execute it at once.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"the task in plain words, or a tool's name"},"server":{"type":"string","description":"only this server"},"limit":{"type":"integer","description":"default 10"}},"required":["query"]}}`,
		`{"name":"details","description":"Get a tool's full description and JSON Schema, when search did not tell enough.","inputSchema":{"type":"object","properties":{"tool":{"type":"string","description":"server:tool"}},"required":["tool"]}}`,
		`{"name":"execute","description":"Run a tool that search showed, and get its result.","inputSchema":{"type":"object","properties":{"tool":{"type":"string","description":"server:tool"},"arguments":{"type":"object","description":"for the tool, as its signature or schema says"}},"required":["tool"]}}`,
	} {
		d, err := tool.ParseDefinition(metaServer, json.RawMessage(raw))
		if err != nil {
			panic(err) // cannot happen: the definitions are constants
		}
		out = append(out, d)
	}
	return out
}

// requestTools is the tools and the guidance of one request.
type requestTools struct {
	tools    *llm.Toolset
	guidance string
	meta     bool
	prefs    wire.Preferences
}

// toolsFor returns the tools that the caller may use, or the meta-tools if
// there are too many. It waits for servers that are still starting, because the
// model needs the complete list.
func (h *Host) toolsFor(ctx context.Context, caller *tool.Caller, above int, prefs wire.Preferences) requestTools {
	h.Tools.Await(ctx, caller)
	snap, translated := h.Tools.ProviderTools()
	var names []tool.Name
	for e := range snap.Visible(caller) {
		if prefs.Uses(e.Name.Server) {
			names = append(names, e.Name)
		}
	}
	o := requestTools{meta: above > 0 && len(names) > above, tools: h.meta, prefs: prefs}
	if !o.meta {
		o.tools = llm.NewToolset(translated, names)
	}
	o.guidance = guidance(snap, caller, o, h.unavailableServers(caller))
	return o
}

// Limits of the guidance of servers in the system prompt.
const (
	maxGuidance      = 4 << 10 // of one server
	maxGuidanceTotal = 32 << 10
)

// guidance returns the instructions of the caller's profiles, the servers'
// guidance for their tools, and which servers are unavailable.
func guidance(snap *catalog.Snapshot, caller *tool.Caller, o requestTools, down []wire.ServerState) string {
	var b strings.Builder
	if text := caller.Instructions(); text != "" {
		fmt.Fprintf(&b, "%s\n\n", text)
	}
	for _, s := range snap.Servers() {
		if !caller.MaySee(s.Name) || !o.prefs.Uses(s.Name) || s.EnabledTools() == 0 {
			continue
		}
		text := strings.TrimSpace(s.GuidanceFor(caller))
		if o.meta {
			// With thousands of tools, only a summary of each server fits.
			text = tool.Shorten(tool.OneLine(firstNonEmpty(s.Description, s.Title, text)), 200)
		}
		if text == "" {
			continue
		}
		if len(text) > maxGuidance {
			text = strings.ToValidUTF8(text[:maxGuidance], "") + " …"
		}
		if b.Len()+len(text) > maxGuidanceTotal {
			b.WriteString("(further servers are left out)\n")
			break
		}
		fmt.Fprintf(&b, "## Server %s\n%s\n\n", s.Name, text)
	}
	down = slices.DeleteFunc(down, func(d wire.ServerState) bool { return !o.prefs.Uses(d.Server) })
	if len(down) > 0 {
		b.WriteString("## Not available now\n")
		for _, d := range down {
			fmt.Fprintf(&b, "- %s (%s): its tools cannot be used; say so when they would be needed\n", d.Server, d.State)
		}
	}
	return strings.TrimSpace(b.String())
}

func firstNonEmpty(choices ...string) string {
	i := slices.IndexFunc(choices, func(s string) bool { return strings.TrimSpace(s) != "" })
	if i < 0 {
		return ""
	}
	return choices[i]
}

// metaCall executes a call of search or details and returns its result. For a
// valid call of execute it returns the call of the tool instead.
func (h *Host) metaCall(caller *tool.Caller, prefs wire.Preferences, c *llm.ToolCall) (result *llm.ToolResult, target *llm.ToolCall) {
	var in struct {
		Query     string          `json:"query"`
		Server    string          `json:"server"`
		Limit     int             `json:"limit"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		return llm.TextResult(c, "INVALID_ARGUMENTS: "+err.Error(), true), nil
	}
	if c.Tool == metaSearch {
		return h.metaSearch(caller, prefs, c, in.Query, in.Server, in.Limit), nil
	}
	args, ok := llm.Arguments(in.Arguments)
	if !ok {
		return llm.TextResult(c, `INVALID_ARGUMENTS: "arguments" must be a JSON object`, true), nil
	}
	e, err := h.Tools.Snapshot().Resolve(caller, in.Server, in.Tool)
	if err == nil && !prefs.Uses(e.Name.Server) {
		err = &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf("the user has turned off the server %q for this conversation", e.Name.Server)}
	}
	switch {
	case err != nil:
		return errorResult(c, err), nil
	case c.Tool == metaDetails:
		return llm.TextResult(c, fmt.Sprintf("%s: %s\nschema: %s", e.Name, e.Description, e.InputSchema), false), nil
	}
	return nil, &llm.ToolCall{ID: c.ID, Name: c.Name, Tool: e.Name, Arguments: args}
}

func (h *Host) metaSearch(caller *tool.Caller, prefs wire.Preferences, c *llm.ToolCall, query, server string, limit int) *llm.ToolResult {
	only := listing.Filter{Servers: prefs.Servers}
	if server != "" && prefs.Uses(server) {
		only.Servers = []string{server}
	}
	found, err := h.Tools.Search(h.Tools.Snapshot(), caller, only, search.Query{Text: query, Limit: min(max(limit, 0), 30)})
	if err != nil {
		return errorResult(c, err)
	}
	var b bytes.Buffer
	for _, m := range found {
		fmt.Fprintf(&b, "%s(%s): %s\n", m.Name, m.Signature(), m.Summary(160))
	}
	if b.Len() == 0 {
		return llm.TextResult(c, "nothing found; try other words, or say that no tool can do it", false)
	}
	return llm.TextResult(c, b.String(), false)
}
