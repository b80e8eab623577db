package control

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"junctor/internal/catalog"
	"junctor/internal/executor"
	"junctor/internal/listing"
	"junctor/internal/search"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Tool describes a tool in a list.
type Tool struct {
	Name        string              `json:"name"` // server:tool
	Server      string              `json:"server"`
	Tool        string              `json:"tool"`
	Title       string              `json:"title,omitempty"`
	Summary     string              `json:"summary"` // the tool in one line: first sentence of the description, else the title or the name
	Signature   string              `json:"signature"`
	Tags        []string            `json:"tags,omitempty"`
	Enabled     bool                `json:"enabled"`
	Reason      string              `json:"reason,omitempty"` // why the tool is disabled; absent if it is enabled
	Approval    catalog.Approval    `json:"approval,omitempty"`
	Changed     bool                `json:"changed,omitempty"` // the definition has changed since it was approved
	App         string              `json:"app,omitempty"`     // URI of the user interface for the tool's results; absent if it has none
	Flags       []string            `json:"flags,omitempty"`   // warnings about the definition
	Stats       executor.Stats      `json:"stats"`
	Relevance   float64             `json:"relevance,omitempty"`   // in search results: estimated probability that this tool is meant, from 0 to 1
	Explanation *search.Explanation `json:"explanation,omitempty"` // in search results with explain
}

// ToolDetails describes a tool completely.
type ToolDetails struct {
	Tool
	Description  string           `json:"description"`
	InputSchema  json.RawMessage  `json:"inputSchema"`
	OutputSchema json.RawMessage  `json:"outputSchema,omitempty"`
	Annotations  tool.Annotations `json:"annotations"`
	Guidance     string           `json:"guidance,omitempty"` // guidance on using the server, as far as the caller may see it
	Definition   json.RawMessage  `json:"definition"`         // the tool's definition in MCP
	// Original is the server's own definition. Absent unless rules override it
	// and the caller is an operator.
	Original json.RawMessage `json:"original,omitempty"`
}

// ToolList is a list of tools or the result of a search.
type ToolList struct {
	Tools   []Tool   `json:"tools"`
	Total   int      `json:"total"`             // number of matching tools on all pages
	Pending []string `json:"pending,omitempty"` // names of the servers that are still starting
	Down    []Down   `json:"down,omitempty"`    // servers that are not connected and whose tools are unknown
	Version uint64   `json:"version"`           // version of the catalogue
}

// Down is a server that is not connected, with the reason.
type Down struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// summaryLength is the maximum length of a one-line summary.
const summaryLength = 160

// maxListed bounds one page of a listing.
const maxListed = 10_000

func (c *Control) newTool(e *catalog.Entry) Tool {
	return Tool{
		Name: e.Name.String(), Server: e.Name.Server, Tool: e.Name.Tool, Title: e.Title,
		Summary: e.Summary(summaryLength), Signature: e.Signature(), Tags: e.Tags,
		Enabled: e.Enabled, Reason: e.Reason, Approval: e.Approval, Changed: e.Review.Changed, App: e.UI.Resource, Flags: e.Warnings(),
		Stats: c.Calls.Stats(e.Original.Name),
	}
}

// filter selects the tools of a listing.
type filter struct {
	listing.Filter
	limit, offset int
}

// toolStates are the values of the state filter.
var toolStates = map[string]func(*catalog.Entry) bool{
	"":         nil,
	"enabled":  func(e *catalog.Entry) bool { return e.Enabled },
	"disabled": func(e *catalog.Entry) bool { return !e.Enabled },
	"changed":  func(e *catalog.Entry) bool { return e.Review.Changed },
	"flagged":  func(e *catalog.Entry) bool { return len(e.Warnings()) > 0 },
	"app":      func(e *catalog.Entry) bool { return e.UI.Resource != "" },
}

func readFilter(r *http.Request) (filter, error) {
	q := r.URL.Query()
	f := filter{Filter: listing.Filter{Servers: q["server"], Tags: q["tag"], Disabled: true, AppsOnly: true}, limit: maxListed}
	var known bool
	if f.Keep, known = toolStates[q.Get("state")]; !known {
		return f, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("unknown state %q; use enabled, disabled, changed, flagged or app", q.Get("state"))}
	}
	for name, into := range map[string]*int{"limit": &f.limit, "offset": &f.offset} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return f, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("%s %q is not a number", name, text)}
			}
			*into = n
		}
	}
	f.limit = min(f.limit, maxListed)
	return f, nil
}

// listTools lists or searches tools. With wait, as sent by the command line,
// it first waits for upstreams that are still starting and have no known
// tools; with wait=fresh it waits for all that are still starting. waitFor
// limits wait to the named servers.
func (c *Control) listTools(r *http.Request) (any, error) {
	f, err := readFilter(r)
	if err != nil {
		return nil, err
	}
	var list ToolList
	caller := tool.CallerFrom(r.Context())
	if q := r.URL.Query(); q.Get("wait") == "fresh" {
		c.awaitServers(r.Context(), &caller, f.Servers)
	} else if q.Has("wait") {
		unknown := c.Tools.Starting(&caller, f.Servers...)
		if names := q["waitFor"]; len(names) > 0 {
			unknown = slices.DeleteFunc(unknown, func(name string) bool { return !slices.Contains(names, name) })
		}
		if len(unknown) > 0 {
			c.Servers.Await(r.Context(), unknown...)
		}
	}
	c.Tools.LoadCallerTools(r.Context(), &caller, f.Servers...)
	snap := c.Tools.Snapshot()
	list.Version = snap.Version
	list.Pending = c.Tools.Starting(&caller, f.Servers...)
	for _, s := range c.Tools.Servers(&caller) {
		if s.Reason != "" && (s.Known == nil || s.Known.Callers != nil) && (len(f.Servers) == 0 || slices.Contains(f.Servers, s.Name)) {
			list.Down = append(list.Down, Down{Name: s.Name, Reason: s.Reason})
		}
	}
	for _, name := range f.Servers {
		if _, ok := c.Servers.StatusOf(name); !ok || !caller.MaySee(name) {
			return nil, c.Tools.ServerNotFoundError(&caller, name)
		}
	}
	if query := r.URL.Query().Get("query"); query != "" {
		list.Tools, err = c.searchTools(snap, &caller, f, query, r.URL.Query().Has("explain"))
		list.Total = len(list.Tools)
	} else {
		list.Tools, list.Total = c.listPage(snap, &caller, f)
	}
	return list, err
}

func (c *Control) listPage(snap *catalog.Snapshot, caller *tool.Caller, f filter) (tools []Tool, total int) {
	tools = []Tool{}
	for e := range c.Tools.List(snap, caller, f.Filter) {
		if total >= f.offset && len(tools) < f.limit {
			tools = append(tools, c.newTool(e))
		}
		total++
	}
	return tools, total
}

func (c *Control) searchTools(snap *catalog.Snapshot, caller *tool.Caller, f filter, query string, explain bool) ([]Tool, error) {
	found, err := c.Tools.Search(snap, caller, f.Filter, search.Query{Text: query, Limit: min(f.limit, search.MaxLimit), Explain: explain})
	tools := make([]Tool, 0, len(found))
	for _, m := range found {
		v := c.newTool(m.Entry)
		v.Relevance, v.Explanation = m.Relevance, m.Explanation
		tools = append(tools, v)
	}
	return tools, err
}

func (c *Control) showTool(r *http.Request) (any, error) {
	server, name := r.PathValue("server"), r.PathValue("tool")
	if server == "-" { // any server that has the tool
		server = ""
	}
	caller := tool.CallerFrom(r.Context())
	c.Tools.LoadCallerTools(r.Context(), &caller)
	e, err := c.Tools.Snapshot().Resolve(&caller, server, name)
	if err != nil && r.URL.Query().Has("wait") {
		var wait []string
		if server != "" {
			wait = []string{server}
		}
		c.awaitServers(r.Context(), &caller, wait)
		e, err = c.Tools.Snapshot().Resolve(&caller, server, name)
	}
	if err != nil {
		if why := c.unavailableError(&caller, server, name); why != nil {
			err = why
		}
		return nil, err
	}
	d := ToolDetails{
		Tool: c.newTool(e), Description: e.Description, InputSchema: e.InputSchema, OutputSchema: e.OutputSchema,
		Annotations: e.Annotations, Definition: e.Raw,
	}
	if e.Overridden() && caller.IsOperator() {
		d.Original = e.Original.Raw
	}
	if s := c.Tools.Snapshot().Server(e.Name.Server); s != nil {
		d.Guidance = s.GuidanceFor(&caller)
	}
	return d, nil
}

// changeTool accepts {"enabled": true, "approval": "ask"}, either or both.
func (c *Control) changeTool(r *http.Request, in struct {
	Enabled  *bool             `json:"enabled,omitempty"`
	Approval *catalog.Approval `json:"approval,omitempty"`
}) (any, error) {
	if in.Enabled == nil && in.Approval == nil || in.Approval != nil && !slices.Contains(in.Approval.Values(), string(*in.Approval)) {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: `send {"enabled": true} or false, or {"approval": "ask"} or "auto"`}
	}
	caller := tool.CallerFrom(r.Context())
	e, err := c.Tools.Snapshot().Resolve(&caller, r.PathValue("server"), r.PathValue("tool"))
	if err != nil {
		return nil, asInvalid(err)
	}
	err = c.Settings.SetTool(e.Original.Name, in.Enabled, in.Approval)
	return okBody, c.finishEdit(r, err, "tool.change", in, e.Name.String())
}

// unavailableError returns the error for a tool that is unknown because its
// server is unavailable; nil if that is not the reason.
func (c *Control) unavailableError(caller *tool.Caller, server, name string) error {
	if n, err := tool.ParseName(name); err == nil && server == "" {
		server = n.Server
	}
	st, ok := c.Servers.StatusOf(server)
	snap := c.Tools.Snapshot()
	if known := snap.Server(server); !ok || !caller.MaySee(server) || known != nil && known.Callers == nil {
		return nil
	}
	if st = c.Tools.Describe(snap, caller, st).Status; st.State == upstream.Connected || st.Reason == "" {
		return nil
	}
	e := &tool.Error{Kind: tool.UpstreamFailed, Msg: server + ": " + st.Reason}
	if st.State == upstream.AuthRequired {
		e.Kind, e.Details = tool.UpstreamAuthRequired, map[string]any{"server": server}
	}
	return e
}
