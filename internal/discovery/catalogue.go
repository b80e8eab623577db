package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"junctor/internal/catalog"
	"junctor/internal/codemode"
	"junctor/internal/listing"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/reserved"
	"junctor/internal/search"
	"junctor/internal/tool"
)

// Limits of parts of a response, in characters.
const (
	summaryLength  = 120
	guidanceLength = 4000
)

// fit returns the items that fit into limit bytes, at least one, and the
// number of the others.
func fit[T any](items []T, limit int) (kept []T, more int) {
	size := 0
	for i, item := range items {
		if size += len(marshal(item)) + 1; size > limit && i > 0 {
			return items[:i], len(items) - i
		}
	}
	return items, 0
}

// toolLine is one tool in a response, or a call of a reserved tool that reads
// a resource or renders a prompt.
type toolLine struct {
	Kind      string   `json:"kind,omitempty"` // of an item; empty for a tool
	Server    string   `json:"server,omitempty"`
	Tool      string   `json:"tool"`
	Summary   string   `json:"summary,omitempty"`
	Signature string   `json:"signature"`
	Relevance float64  `json:"relevance,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	Disabled  string   `json:"disabled,omitempty"`

	From      string          `json:"from,omitempty"`      // the server of an item
	Arguments json.RawMessage `json:"arguments,omitempty"` // of the reserved tool that reads the item
}

func lineOf(e *catalog.Entry) toolLine {
	l := toolLine{Tool: e.Name.Tool, Summary: e.Summary(summaryLength), Signature: e.Signature(), Tags: e.Tags}
	if !e.Enabled {
		l.Disabled = e.Reason
	}
	return l
}

func (v *metaView) searchTools(ctx context.Context, r *mcpserver.Request, args map[string]json.RawMessage) (json.RawMessage, error) {
	cfg := v.face.config.Load()
	q, server := search.Query{Text: rawjson.FieldString(args["query"]), Limit: cfg.SearchLimit}, rawjson.FieldString(args["server"])
	if raw, ok := args["limit"]; ok {
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || n < 1 || n != math.Trunc(n) {
			return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "limit must be a whole number from 1 up"}
		}
		q.Limit = int(min(n, float64(cfg.MaxSearchLimit)))
	}
	var only listing.Filter
	if server != "" {
		only.Servers = []string{server}
	}
	tools := v.face.opts.Tools
	pending := tools.Await(ctx, &r.Caller, only.Servers...)
	snap := tools.Snapshot()
	if server != "" {
		if err := tools.CheckServer(snap, &r.Caller, server); err != nil {
			return nil, err
		}
	}
	found, err := tools.Search(snap, &r.Caller, only, q)
	if err != nil {
		return nil, err
	}
	lines := make([]toolLine, 0, len(found))
	for _, m := range found {
		l := lineOf(m.Entry)
		if v.code {
			l.Signature = codemode.Signature(m.Entry)
		}
		l.Server, l.Relevance = m.Name.Server, round(m.Relevance)
		lines = append(lines, l)
	}
	lines = withItems(lines, v.face.view.searchItems(ctx, r, q, server), q.Limit)
	out := struct {
		Results []toolLine `json:"results"`
		More    int        `json:"more,omitempty"`
		Pending []string   `json:"pending,omitempty"`
		Hint    string     `json:"hint,omitempty"`
	}{Pending: pending}
	out.Results, out.More = fit(lines, cfg.MaxAnswerBytes)
	switch {
	case len(out.Results) == 0:
		out.Results = []toolLine{}
		out.Hint = "nothing fits; try other words"
		if !v.code {
			out.Hint += ", or list_mcp_servers and list_tools"
		}
	case len(pending) > 0:
		out.Hint = "the pending servers are still starting and may have more"
	}
	return answer(out), nil
}

func round(relevance float64) float64 { return math.Round(relevance*100) / 100 }

// explain returns the state of a server as the error if the server was not
// found but is known.
func (f *Face) explain(err error, caller *tool.Caller, server string) error {
	if tool.KindOf(err) == tool.ServerNotFound {
		if why := f.opts.Tools.CheckServer(f.opts.Tools.Snapshot(), caller, server); why != nil {
			return why
		}
	}
	return err
}

func (v *metaView) listTools(ctx context.Context, r *mcpserver.Request, args map[string]json.RawMessage) (json.RawMessage, error) {
	cfg, server := v.face.config.Load(), rawjson.FieldString(args["server"])
	v.face.opts.Tools.Await(ctx, &r.Caller, server)
	snap := v.face.opts.Tools.Snapshot()
	if err := v.face.opts.Tools.CheckServer(snap, &r.Caller, server); err != nil {
		return nil, err
	}
	from := 0
	if raw, ok := args["cursor"]; ok {
		n, err := strconv.Atoi(rawjson.FieldString(raw))
		if err != nil || n < 0 {
			return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "cursor must be one that list_tools returned"}
		}
		from = n
	}
	all := slices.Collect(v.face.opts.Tools.List(snap, &r.Caller, listing.Filter{Servers: []string{server}, Disabled: string(args["includeDisabled"]) == "true"}))
	page := all[min(from, len(all)):]
	page = page[:min(len(page), cfg.ListLimit)]
	lines := make([]toolLine, len(page))
	for i, e := range page {
		lines[i] = lineOf(e)
	}
	out := struct {
		Server string     `json:"server"`
		Tools  []toolLine `json:"tools"`
		Total  int        `json:"total,omitempty"`
		Cursor string     `json:"cursor,omitempty"`
		Hint   string     `json:"hint,omitempty"`
	}{Server: server}
	out.Tools, _ = fit(lines, cfg.MaxAnswerBytes)
	if out.Tools == nil {
		out.Tools = []toolLine{}
	}
	if next := from + len(out.Tools); next < len(all) {
		out.Total, out.Cursor = len(all), strconv.Itoa(next)
		out.Hint = fmt.Sprintf("%d more: search_tools with server %q finds the right one, or list_tools with \"cursor\":%q goes on", len(all)-next, server, out.Cursor)
	}
	return answer(out), nil
}

// parameter is one parameter of a tool in its details.
type parameter struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required,omitempty"`
}

// details is the complete description of a tool for an agent.
type details struct {
	Kind        string          `json:"kind,omitempty"` // of an item; empty for a tool
	Server      string          `json:"server"`
	Tool        string          `json:"tool"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  []parameter     `json:"parameters"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	Disabled    string          `json:"disabled,omitempty"`
	Approval    string          `json:"approval,omitempty"`
	Warnings    []string        `json:"warnings,omitempty"`
	Guidance    string          `json:"guidance,omitempty"`

	From      string          `json:"from,omitempty"`      // the server of an item
	Arguments json.RawMessage `json:"arguments,omitempty"` // of the reserved tool that reads the item
}

func (v *metaView) toolDetails(ctx context.Context, r *mcpserver.Request, args map[string]json.RawMessage) (json.RawMessage, error) {
	cfg, server, name := v.face.config.Load(), rawjson.FieldString(args["server"]), rawjson.FieldString(args["tool"])
	if own, ok := reserved.Lookup(server, name); ok {
		return answer(reservedDetails(own)), nil
	}
	v.face.opts.Tools.Await(ctx, &r.Caller, server)
	snap := v.face.opts.Tools.Snapshot()
	if err := v.face.opts.Tools.CheckServer(snap, &r.Caller, server); err != nil {
		return nil, err
	}
	e, err := snap.Resolve(&r.Caller, server, name)
	if tool.KindOf(err) == tool.ToolNotFound {
		if d, ok := v.face.view.itemDetails(ctx, r, server, name); ok {
			d.fit(cfg.MaxAnswerBytes, "")
			return answer(d), nil
		}
	}
	if err != nil {
		return nil, err
	}
	d := details{
		Server: e.Name.Server, Tool: e.Name.Tool, Title: e.Title, Description: e.Description,
		Parameters: parameters(e.InputSchema), Input: e.InputSchema, Output: e.OutputSchema,
		Annotations: rawjson.Field(e.Raw, "annotations"), Tags: e.Tags, Approval: string(e.Approval),
		Warnings: e.Warnings(), Guidance: tool.Shorten(snap.Server(server).OwnGuidance(&r.Caller), guidanceLength),
	}
	if d.Title == d.Tool {
		d.Title = ""
	}
	if !e.Enabled {
		d.Disabled = e.Reason
	}
	if e.Review.Changed {
		d.Warnings = append(slices.Clip(d.Warnings), "the definition changed since it was first seen")
	}
	d.fit(cfg.MaxAnswerBytes, e.Signature())
	return answer(d), nil
}

// fit drops optional parts while the details have more than limit bytes.
func (d *details) fit(limit int, signature string) {
	for _, drop := range []func(){
		func() { d.Guidance = "" },
		func() { d.Output = nil },
		func() { d.Parameters = []parameter{} },
		func() { d.Description = tool.Shorten(d.Description, limit/4) },
		func() { d.Title, d.Annotations = tool.Shorten(d.Title, summaryLength), nil },
		func() {
			d.Input = marshal(fmt.Sprintf("the schema has %d bytes and is left out; the parameters are: %s", len(d.Input), signature))
		},
	} {
		if len(marshal(d)) <= limit {
			return
		}
		drop()
	}
}

func parameters(schema json.RawMessage) []parameter {
	required := map[string]bool{}
	for name := range rawjson.Elements(rawjson.Field(schema, "required")) {
		required[rawjson.FieldString(name)] = true
	}
	list := []parameter{}
	for name, property := range rawjson.Members(rawjson.Field(schema, "properties")) {
		list = append(list, parameter{name, tool.TypeName(property, schema), required[name]})
	}
	return list
}

func (v *metaView) executeTool(ctx context.Context, r *mcpserver.Request, args map[string]json.RawMessage) (json.RawMessage, error) {
	call := callOf(r, rawjson.FieldString(args["server"]), rawjson.FieldString(args["tool"]))
	// Models omit the arguments if a tool takes none. If it requires some,
	// validation reports them with the schema.
	if call.Arguments = args["arguments"]; call.Arguments == nil {
		call.Arguments = json.RawMessage(`{}`)
	}
	// A retry forwards the responses to the server's questions.
	for _, key := range []string{"requestState", "inputResponses"} {
		if value := rawjson.Field(r.Params, key); value != nil {
			call.Params = rawjson.SetField(call.Params, value, key)
		}
	}
	call.Select = rawjson.FieldString(args["select"])
	result, err := v.face.execute(ctx, r, call)
	if err != nil {
		return nil, v.face.explain(err, &r.Caller, call.Server)
	}
	return v.face.opts.Results.Fit(&r.Caller, result, v.face.config.Load().MaxResultBytes), nil
}
