package toolsapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/catalog"
	"junctor/internal/listing"
	"junctor/internal/provider"
	"junctor/internal/rawjson"
	"junctor/internal/search"
	"junctor/internal/tool"
)

// filter restricts a listing.
type filter struct {
	listing.Filter
	query   string
	limit   int
	concise bool
	schema  string
	strict  bool
}

// parameters are the documented query parameters of a listing.
var parameters = []string{"server", "tags", "tag", "tool", "query", "limit", "detail", "schema", "strict"}

func readFilter(q url.Values) (filter, error) {
	f := filter{query: strings.TrimSpace(q.Get("query")), schema: q.Get("schema")}
	f.Servers, f.Tags, f.Tools = list(q, "server"), list(q, "tags", "tag"), q["tool"]
	switch detail := q.Get("detail"); detail {
	case "", "full", "detailed":
	case "concise":
		f.concise = true
	default:
		return f, invalid("detail %q is neither concise nor full", detail)
	}
	var err error
	if f.limit, err = readLimit(q); err != nil {
		return f, err
	}
	if text := q.Get("strict"); text != "" {
		if f.strict, err = strconv.ParseBool(text); err != nil {
			return f, invalid("strict %q is neither true nor false", text)
		}
	}
	return f, nil
}

func readLimit(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, invalid("limit %q is not a number above 0", text)
	}
	return n, nil
}

// list returns the values of a parameter that may be repeated or
// comma-separated.
func list(q url.Values, names ...string) []string {
	var all []string
	for _, name := range names {
		for _, v := range q[name] {
			for _, part := range strings.Split(v, ",") {
				if part = strings.TrimSpace(part); part != "" && !slices.Contains(all, part) {
					all = append(all, part)
				}
			}
		}
	}
	return all
}

func invalid(format string, args ...any) error {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = tool.Shorten(s, 64)
		}
	}
	return &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf(format, args...)}
}

// selection is the result of a filter.
type selection struct {
	snap    *catalog.Snapshot
	tools   *provider.Tools
	entries []*catalog.Entry
	pending []string // servers that are still starting
	down    []string // servers that are not connected, each with the reason
}

// selected parses the request's filter and returns the selected tools.
func (a *API) selected(r *http.Request) (filter, selection, error) {
	f, err := readFilter(r.URL.Query())
	if err != nil {
		return f, selection{}, err
	}
	s, err := a.pick(r.Context(), f)
	return f, s, err
}

// selectedFor is like selected for a path with a provider. An unknown provider
// is reported as a path that does not exist.
func (a *API) selectedFor(r *http.Request) (name string, f filter, s selection, err error) {
	if name, err = provider.Lookup(r.PathValue("provider")); err != nil {
		e := *tool.AsError(err)
		e.Kind = tool.MethodNotFound
		return "", f, s, &e
	}
	f, s, err = a.selected(r)
	return name, f, s, err
}

// pick returns the matching tools that the caller may use, in the order of the
// catalogue or, with a query, of relevance.
func (a *API) pick(ctx context.Context, f filter) (selection, error) {
	caller := tool.CallerFrom(ctx)
	s := selection{pending: a.Tools.Await(ctx, &caller, f.Servers...)}
	s.snap, s.tools = a.Tools.ProviderTools()
	for _, name := range f.Servers {
		err := a.Tools.CheckServer(s.snap, &caller, name)
		if err != nil && tool.KindOf(err) != tool.ToolDisabled && !slices.Contains(s.pending, name) {
			return s, err // a disabled server has no tools, and one that is starting is listed in the response
		}
	}
	for _, server := range a.Tools.Servers(&caller) {
		if server.Available() || len(f.Servers) > 0 && !slices.Contains(f.Servers, server.Name) {
			continue
		}
		text := fmt.Sprintf("%s is %s", server.Name, server.State)
		if server.Reason != "" {
			text += ": " + tool.Shorten(server.Reason, 200)
		}
		s.down = append(s.down, text)
	}
	if f.query == "" {
		s.entries = slices.Collect(a.Tools.List(s.snap, &caller, f.Filter))
		return s, nil
	}
	found, err := a.Tools.Search(s.snap, &caller, f.Filter, search.Query{Text: f.query, Limit: min(f.limit, search.MaxLimit)})
	for _, m := range found {
		s.entries = append(s.entries, m.Entry)
	}
	return s, err
}

// listTools responds with the definitions as received from the upstreams, each
// with its server.
func (a *API) listTools(w http.ResponseWriter, r *http.Request) error {
	f, s, err := a.selected(r)
	if err != nil {
		return err
	}
	if f.limit > 0 && len(s.entries) > f.limit {
		s.entries = s.entries[:f.limit]
	}
	body := []byte(`{"tools":[`)
	for _, e := range s.entries {
		body = rawjson.AppendComma(body)
		body = appendWithServer(body, e)
	}
	body = append(body, ']')
	if len(s.pending) > 0 {
		body = append(append(body, `,"pending":`...), rawjson.MarshalOrNull(s.pending)...)
	}
	if len(s.down) > 0 {
		body = append(append(body, `,"down":`...), rawjson.MarshalOrNull(s.down)...)
	}
	writeBody(w, http.StatusOK, append(body, '}'))
	return nil
}

// appendWithServer appends the server to a definition and leaves the rest
// unchanged, including unknown keys and large numbers.
func appendWithServer(body []byte, e *catalog.Entry) []byte {
	raw := strings.TrimSpace(string(e.Raw))
	body = append(append(body, raw[:len(raw)-1]...), `,"server":`...)
	return append(rawjson.AppendQuoted(body, e.Name.Server), '}')
}

// declare responds with the tools in a provider's format.
func (a *API) declare(w http.ResponseWriter, r *http.Request) error {
	name, f, s, err := a.selectedFor(r)
	if err != nil {
		return err
	}
	names := make([]tool.Name, len(s.entries))
	for i, e := range s.entries {
		names[i] = e.Name
	}
	l, err := s.tools.Declare(name, names, provider.Options{Schema: f.schema, Strict: f.strict, Concise: f.concise, Limit: f.limit})
	if err != nil {
		return err
	}
	l.Warnings = append(l.Warnings, f.warnings(r.URL.Query(), s, len(l.Declarations))...)
	writeBody(w, http.StatusOK, l.Body())
	return nil
}

// The codes of warnings about a request.
const (
	pendingServers = "pending" // servers that are still starting
	downServer     = "down"    // a server that is not connected
	ignored        = "ignored" // an unknown parameter
	noTools        = "none"    // no tool matches
)

// warnings returns warnings about why a listing may not be what was intended.
func (f filter) warnings(q url.Values, s selection, found int) []provider.Warning {
	var list []provider.Warning
	warn := func(code, format string, args ...any) {
		list = append(list, provider.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	if len(s.pending) > 0 {
		warn(pendingServers, "still starting, their tools are missing here: %s; ask again shortly", strings.Join(s.pending, ", "))
	}
	for _, text := range s.down {
		warn(downServer, "%s", text)
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(parameters, name) {
			warn(ignored, "unknown parameter %q; the parameters are %s", tool.Shorten(name, 64), strings.Join(parameters, ", "))
		}
	}
	if f.query != "" && f.limit > search.MaxLimit {
		warn(provider.OverLimit, "a query finds at most %d tools", search.MaxLimit)
	}
	if found == 0 {
		warn(noTools, "no tool matches; omit the list from the request, because providers reject an empty one")
	}
	return list
}

// context responds with the tools as text for a prompt.
func (a *API) context(w http.ResponseWriter, r *http.Request) error {
	name, f, s, err := a.selectedFor(r)
	if err != nil {
		return err
	}
	if f.limit > 0 && len(s.entries) > f.limit {
		s.entries = s.entries[:f.limit]
	}
	caller := tool.CallerFrom(r.Context())
	p, err := s.tools.Context(name, groups(&caller, s), f.concise)
	if err != nil {
		return err
	}
	w.Header().Set("X-Token-Estimate", strconv.Itoa(p.Tokens))
	w.Header().Add("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		writeJSON(w, http.StatusOK, contextBody{name, p.Text, p.Tokens, p.Tools, s.pending})
		return nil
	}
	write(w, http.StatusOK, "text/plain", []byte(p.Text))
	return nil
}

type contextBody struct {
	Provider string   `json:"provider"`
	Context  string   `json:"context"`
	Tokens   int      `json:"tokenEstimate"`
	Tools    int      `json:"tools"`
	Pending  []string `json:"pending,omitempty"`
}

// groups groups tools by server, in the order in which the servers first
// appear; with a query, the server of the best match comes first.
func groups(caller *tool.Caller, s selection) []provider.ContextGroup {
	var groups []provider.ContextGroup
	at := map[string]int{}
	for _, e := range s.entries {
		i, ok := at[e.Name.Server]
		if !ok {
			i = len(groups)
			at[e.Name.Server] = i
			g := provider.ContextGroup{Server: e.Name.Server}
			if server := s.snap.Server(e.Name.Server); server != nil {
				g.Guidance = server.OwnGuidance(caller)
			}
			groups = append(groups, g)
		}
		groups[i].Tools = append(groups[i].Tools, provider.ContextTool{Name: e.Name, Tags: e.Tags})
	}
	return groups
}
