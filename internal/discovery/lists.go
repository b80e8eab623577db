package discovery

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// kind is the kind of a list that is merged from all upstreams.
type kind int

const (
	prompts kind = iota
	resources
	templates
)

// kinds has the method, the capability, the result member and the identifying
// key of each list.
var kinds = [...]struct{ method, capability, member, key string }{
	prompts:   {mcp.MethodPromptsList, "prompts", "prompts", "name"},
	resources: {mcp.MethodResourcesList, "resources", "resources", "uri"},
	templates: {mcp.MethodTemplatesList, "resources", "resourceTemplates", "uriTemplate"},
}

func kindOf(method string) kind {
	for k, d := range kinds {
		if d.method == method {
			return kind(k)
		}
	}
	return prompts
}

// Limits of a merged list.
const (
	maxPages         = 20 // per upstream
	maxItems         = 5000
	listsAtOnce      = 32              // concurrent requests to upstreams
	listTimeout      = 5 * time.Second // for all upstreams: clients list before they do anything else
	listTTL          = time.Minute
	maxCachedCallers = 256 // callers whose lists are cached
)

// list is a merged list: the items as clients see them, and the servers they
// come from.
type list struct {
	at     time.Time
	items  []json.RawMessage
	from   []string            // the server of each item
	names  *table[tool.Name]   // only for prompts
	owners map[string][]string // servers by URI or template; the first owns the plain URI
}

// callerLists are the lists of one caller. They are not shared between callers,
// because an upstream may return different lists.
type callerLists struct{ of [len(kinds)]*list }

// forget drops the cached lists when a server's lists have changed.
func (v *directView) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.lists)
	clear(v.found)
}

// list responds to a list request with one page.
func (v *directView) list(ctx context.Context, r *mcpserver.Request, k kind) (json.RawMessage, error) {
	from, fresh := 0, true
	if cursor := rawjson.FieldString(r.Params, "cursor"); cursor != "" {
		n, err := strconv.Atoi(cursor)
		if err != nil || n < 0 {
			return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "the cursor is not valid; start again without it"}
		}
		from, fresh = n, false
	}
	l, err := v.fetch(ctx, r, k, fresh)
	if err != nil {
		return nil, err
	}
	page := l.items[min(from, len(l.items)):]
	page = page[:min(len(page), directPage)]
	out := appendList([]byte(`{"`+kinds[k].member+`":`), page)
	if next := from + len(page); next < len(l.items) {
		out = append(out, `,"nextCursor":"`+strconv.Itoa(next)+`"`...)
	}
	return append(out, `,"ttlMs":60000,"cacheScope":"private"}`...), nil
}

// fetch returns a merged list, from the cache unless fresh is set.
func (v *directView) fetch(ctx context.Context, r *mcpserver.Request, k kind, fresh bool) (*list, error) {
	v.mu.Lock()
	kept := v.lists[r.Caller.RightsView()]
	v.mu.Unlock()
	if kept != nil && !fresh && kept.of[k] != nil && time.Since(kept.of[k].at) < listTTL {
		return kept.of[k], nil
	}
	v.face.opts.Tools.Await(ctx, &r.Caller)
	return v.fetchFrom(ctx, r, k, v.serversWith(&r.Caller, k))
}

// fetchFrom fetches the merged list of the servers and caches it.
func (v *directView) fetchFrom(ctx context.Context, r *mcpserver.Request, k kind, servers []string) (*list, error) {
	found := make([][]json.RawMessage, len(servers))
	asking, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var wg sync.WaitGroup
	gate := make(chan struct{}, listsAtOnce)
	for i, server := range servers {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			found[i] = v.pages(asking, r, server, k)
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := merge(k, servers, found)
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.lists) >= maxCachedCallers {
		clear(v.lists)
	}
	view, next := r.Caller.RightsView(), callerLists{}
	if old := v.lists[view]; old != nil {
		next = *old // copied, because readers hold no lock
	}
	next.of[k] = l
	v.lists[view] = &next
	return l, nil
}

// serversWith returns the connected servers that support the list.
func (v *directView) serversWith(caller *tool.Caller, k kind) []string {
	var servers []string
	for _, st := range v.face.opts.Tools.Servers(caller) {
		if info, ok := v.face.opts.Upstreams.Info(st.Name, caller.ID); ok && rawjson.Field(info.Capabilities, kinds[k].capability) != nil {
			servers = append(servers, st.Name)
		}
	}
	return servers
}

// pages fetches the complete list of one server. If the server fails or times
// out, it returns the pages fetched so far.
func (v *directView) pages(ctx context.Context, r *mcpserver.Request, server string, k kind) []json.RawMessage {
	var items []json.RawMessage
	params := json.RawMessage(`{}`)
	own := *r
	own.Params, own.Exchange = nil, tool.Exchange{}
	for range maxPages {
		result, err := v.face.forward(ctx, &own, server, kinds[k].method, params)
		if err != nil {
			v.face.log.DebugContext(ctx, "cannot read a list; skipping it", "server", server, "method", kinds[k].method, "err", err)
			break
		}
		for item := range rawjson.Elements(rawjson.Field(result, kinds[k].member)) {
			items = append(items, item)
		}
		cursor := rawjson.FieldString(result, "nextCursor")
		if cursor == "" || len(items) >= maxItems {
			break
		}
		params = rawjson.SetField(nil, marshal(cursor), "cursor")
	}
	return items
}

// merge merges the lists of servers. Prompts get public names. If several
// servers have the same URI, the first keeps it and the others get an alias.
func merge(k kind, servers []string, found [][]json.RawMessage) *list {
	l := &list{at: time.Now(), names: newTable[tool.Name](0), owners: map[string][]string{}}
	key := kinds[k].key
	for i, server := range servers {
		for _, item := range found[i] {
			own := rawjson.FieldString(item, key)
			if own == "" || len(l.items) == maxItems {
				continue
			}
			if k == prompts {
				before := len(l.names.names)
				l.names.add(server, own, tool.Name{Server: server, Tool: own})
				if len(l.names.names) > before {
					l.items = append(l.items, rawjson.SetField(item, marshal(l.names.names[before]), key))
					l.from = append(l.from, server)
				}
				continue
			}
			owners := l.owners[own]
			if len(owners) > 0 {
				item = rawjson.SetField(item, marshal(alias(server, own)), key)
			}
			l.owners[own] = append(owners, server)
			l.items = append(l.items, item)
			l.from = append(l.from, server)
		}
	}
	l.names.sort()
	return l
}

// aliasScheme is the prefix of aliases of resources whose URI exists on
// another server too.
const aliasScheme = "junctor:"

// uiAlias is the prefix of aliases of user interfaces, which clients recognize
// by the scheme.
const uiAlias = "ui://junctor/"

func alias(server, uri string) string {
	if rest, ok := strings.CutPrefix(uri, "ui://"); ok {
		return uiAlias + server + "/" + rest
	}
	return aliasScheme + server + ":" + uri
}

// unalias resolves an alias; ok is false if uri is not one.
func unalias(uri string) (server, own string, ok bool) {
	if rest, is := strings.CutPrefix(uri, uiAlias); is {
		server, own, ok = strings.Cut(rest, "/")
		return server, "ui://" + own, ok
	}
	if rest, is := strings.CutPrefix(uri, aliasScheme); is {
		return strings.Cut(rest, ":")
	}
	return "", "", false
}

// renamed replaces a server's own URI in the result of resources/read by the
// alias that the client requested.
func renamed(result json.RawMessage, own, alias string) json.RawMessage {
	var contents []json.RawMessage
	for c := range rawjson.Elements(rawjson.Field(result, "contents")) {
		if rawjson.FieldString(c, "uri") == own {
			c = rawjson.SetField(c, marshal(alias), "uri")
		}
		contents = append(contents, c)
	}
	if contents == nil {
		return result
	}
	return rawjson.SetField(result, appendList(nil, contents), "contents")
}

// withInterfaceAlias replaces the URI of the user interface in a tool's
// definition by its alias if another server has the same URI.
func (v *directView) withInterfaceAlias(ctx context.Context, r *mcpserver.Request, server string, definition json.RawMessage) json.RawMessage {
	for _, path := range [][]string{{"_meta", "ui", "resourceUri"}, {"_meta", "ui/resourceUri"}} {
		uri := rawjson.FieldString(definition, path...)
		if uri == "" {
			continue
		}
		l, err := v.fetch(ctx, r, resources, false)
		if err != nil || len(l.owners[uri]) == 0 || l.owners[uri][0] != server {
			definition = rawjson.SetField(definition, marshal(alias(server, uri)), path...)
		}
	}
	return definition
}

// owners returns the servers that may have the resource or template, most
// likely first, and the server's own URI for it.
func (v *directView) owners(ctx context.Context, r *mcpserver.Request, uri string) (servers []string, own string, err error) {
	server, own, aliased := unalias(uri)
	hidden := aliased && !r.Caller.MaySee(server) // a server that does not exist must look the same
	if aliased && !hidden {
		if _, connected := v.face.opts.Upstreams.Info(server, r.Caller.ID); connected {
			return []string{server}, own, nil
		}
	}
	var l *list
	for _, k := range []kind{resources, templates} {
		if l, err = v.fetch(ctx, r, k, false); err != nil {
			return nil, "", err
		}
		if owners := l.owners[uri]; len(owners) > 0 {
			return owners[:1], uri, nil
		}
	}
	for template, owners := range l.owners {
		if fitsTemplate(template, uri) {
			servers = append(servers, owners...)
		}
	}
	if !hidden {
		servers = append(servers, v.serversWith(&r.Caller, resources)...) // linked resources may be missing from the list
	}
	return unique(servers), uri, nil
}

// fitsTemplate reports whether a URI may match a template: the literal parts
// of the template occur in order.
func fitsTemplate(template, uri string) bool {
	first := true
	for template != "" {
		text, rest, open := strings.Cut(template, "{")
		i := strings.Index(uri, text)
		if i < 0 || first && i > 0 {
			return false
		}
		uri, first = uri[i+len(text):], false
		if !open {
			return uri == "" || text == ""
		}
		_, template, _ = strings.Cut(rest, "}")
	}
	return true
}

func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// mayOwn reports whether a plain URI refers to a resource of the server for
// the caller. It does unless the caller's list has it from another server.
func (v *directView) mayOwn(c *tool.Caller, server, uri string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.lists[c.RightsView()]
	if l == nil || l.of[resources] == nil {
		return true
	}
	owners := l.of[resources].owners[uri]
	return len(owners) == 0 || owners[0] == server
}
