package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/reserved"
	"junctor/internal/search"
	"junctor/internal/tool"
)

const (
	itemsTTL     = 10 * time.Minute // maximum age of the index; servers announce changes
	itemsTimeout = 3 * time.Second  // after this, a search returns without items

	maxItemKey = 2 << 10 // maximum size of a URI, template or name in results, in bytes

	// The minimum relevance of an item in search results, absolute and
	// relative to the best tool.
	minRelevance      = 0.3
	minRelevanceShare = 0.5
)

// item is a resource, a template, a prompt or a skill.
type item struct {
	kind   kind
	server string
	key    string // the URI, template or name in the direct view
	raw    json.RawMessage
}

// itemIndex is the index of the items that one caller can search.
type itemIndex struct {
	servers []string      // servers whose lists were read
	before  *itemIndex    // searched until this one is ready; guarded by directView.mu
	ready   chan struct{} // closed when the fields below are set

	at    time.Time
	items map[tool.Name]item // by their names in index
	index *search.Index
}

// searchItems returns the items that match a query, best first.
func (v *directView) searchItems(ctx context.Context, r *mcpserver.Request, q search.Query, server string) []toolLine {
	x := v.itemsOf(ctx, r)
	if x == nil || len(x.items) == 0 {
		return nil
	}
	own := search.Query{Text: q.Text, Limit: maxItemsIn(q.Limit)}
	if server != "" {
		own.Servers = []string{server}
	}
	hits, err := x.index.Search(own)
	if err != nil {
		return nil
	}
	var lines []toolLine
	for _, h := range hits {
		if h.Relevance >= minRelevance {
			lines = append(lines, x.items[h.Name].line(h.Relevance))
		}
	}
	return lines
}

// maxItemsIn returns how many of limit search results may be items.
func maxItemsIn(limit int) int { return max(1, limit/3) }

// withItems merges items into the tools found by a search, by relevance. Tools
// keep their order.
func withItems(tools, items []toolLine, limit int) []toolLine {
	best := 0.0
	for _, t := range tools {
		best = max(best, t.Relevance)
	}
	for _, it := range items {
		if it.Relevance < minRelevanceShare*best {
			continue
		}
		at := slices.IndexFunc(tools, func(t toolLine) bool { return t.Relevance < it.Relevance })
		if at < 0 {
			at = len(tools)
		}
		tools = slices.Insert(tools, at, it)
	}
	return tools[:min(len(tools), limit)]
}

// itemsOf returns the index of the items of the caller's servers. It is built
// on the caller's first search, when the set of servers has changed, and when
// it is older than itemsTTL. In the last case the old index is searched
// meanwhile.
func (v *directView) itemsOf(ctx context.Context, r *mcpserver.Request) *itemIndex {
	if v.face.opts.NewItemIndex == nil {
		return nil
	}
	var servers []string
	for _, k := range []kind{prompts, resources} {
		servers = append(servers, v.serversWith(&r.Caller, k)...)
	}
	if len(servers) == 0 {
		return nil
	}
	view := r.Caller.RightsView()
	v.mu.Lock()
	x := v.found[view]
	same := x != nil && slices.Equal(x.servers, servers)
	if !same || x.isReady() && time.Since(x.at) > itemsTTL {
		next := &itemIndex{servers: servers, ready: make(chan struct{})}
		if same {
			next.before = x
		}
		if len(v.found) >= maxCachedCallers {
			clear(v.found)
		}
		v.found[view], x = next, next
		own := *r
		own.Params, own.Exchange, own.Session = nil, tool.Exchange{}, nil
		go v.readItems(context.WithoutCancel(ctx), &own, next)
	}
	before := x.before
	v.mu.Unlock()
	if before != nil && !x.isReady() {
		return before
	}
	timer := time.NewTimer(itemsTimeout)
	defer timer.Stop()
	select {
	case <-x.ready:
		return x
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

func (x *itemIndex) isReady() bool {
	select {
	case <-x.ready:
		return true
	default:
		return false
	}
}

// readItems fetches the lists of the servers and builds the index.
func (v *directView) readItems(ctx context.Context, r *mcpserver.Request, x *itemIndex) {
	var lists [len(kinds)]*list
	var wg sync.WaitGroup
	for k := range lists {
		wg.Go(func() {
			l, err := v.fetchFrom(ctx, r, kind(k), v.serversWith(&r.Caller, kind(k)))
			if err != nil {
				v.face.log.DebugContext(ctx, "cannot search a list; skipping it", "list", kinds[k].method, "err", err)
				l = &list{}
			}
			lists[k] = l
		})
	}
	wg.Wait()
	x.items, x.index = map[tool.Name]item{}, v.face.opts.NewItemIndex()
	docs := map[string][]search.Doc{}
	for k, l := range lists {
		for i, raw := range l.items {
			it := item{kind(k), l.from[i], rawjson.FieldString(raw, kinds[k].key), raw}
			if len(it.key) > maxItemKey {
				continue
			}
			doc := it.document()
			if _, taken := x.items[doc.Name]; taken {
				doc.Name.Tool += " " + it.key
			}
			x.items[doc.Name] = it
			docs[it.server] = append(docs[it.server], doc)
		}
	}
	for server, list := range docs {
		x.index.Put(server, list)
	}
	x.at = time.Now()
	close(x.ready)
	v.mu.Lock()
	x.before = nil // otherwise the chain of old indexes would stay in memory
	v.mu.Unlock()
}

// document returns the searchable text of an item.
func (it item) document() search.Doc {
	name := rawjson.FieldString(it.raw, "name")
	about := []string{rawjson.FieldString(it.raw, "description"), it.kindName(), rawjson.FieldString(it.raw, "mimeType")}
	if it.kind == prompts {
		name = strings.TrimPrefix(name, it.server+"__")
	} else {
		about = append(about, it.key)
	}
	return search.Doc{Name: tool.Name{Server: it.server, Tool: cmp.Or(name, it.key)}, Title: rawjson.FieldString(it.raw, "title"), Description: strings.Join(about, " ")}
}

// kindName returns the name of an item's kind in responses.
func (it item) kindName() string {
	switch {
	case it.kind == prompts:
		return "prompt"
	case strings.HasPrefix(it.key, "skill://"):
		return "skill"
	case it.kind == templates:
		return "resource template"
	}
	return "resource"
}

// call returns the reserved tool that reads the item, and its arguments.
func (it item) call() (reserved.Tool, json.RawMessage) {
	if it.kind == prompts {
		own, _ := reserved.Lookup(reserved.Server, reserved.GetPrompt)
		return own, marshal(map[string]string{"name": it.key})
	}
	own, _ := reserved.Lookup(reserved.Server, reserved.ReadResource)
	return own, marshal(map[string]string{"uri": it.key})
}

// promptArgument is an argument of a prompt.
type promptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

func (it item) promptArguments() []promptArgument {
	var args []promptArgument
	_ = json.Unmarshal(rawjson.Field(it.raw, "arguments"), &args) // invalid arguments are omitted
	return args
}

// signature describes what to add to the arguments.
func (it item) signature() string {
	switch it.kind {
	case templates:
		return "fill in what is in braces"
	case prompts:
		var names []string
		for _, a := range it.promptArguments() {
			if a.Required {
				a.Name += "*"
			}
			names = append(names, a.Name)
		}
		if len(names) > 0 {
			return fmt.Sprintf("also arguments: {%s}", tool.Shorten(strings.Join(names, ", "), 400))
		}
	}
	return ""
}

// line returns the item as a search result.
func (it item) line(relevance float64) toolLine {
	own, arguments := it.call()
	title := cmp.Or(rawjson.FieldString(it.raw, "title"), rawjson.FieldString(it.raw, "name"))
	summary := tool.OneLine(rawjson.FieldString(it.raw, "description"))
	if summary == "" || it.kind != prompts && !strings.Contains(summary, title) {
		summary = strings.TrimSuffix(tool.OneLine(title)+": "+summary, ": ")
	}
	return toolLine{
		Kind: it.kindName(), Server: reserved.Server, Tool: own.Name, From: it.server, Arguments: arguments,
		Summary: tool.Shorten(summary, summaryLength), Signature: it.signature(), Relevance: round(relevance),
	}
}

// itemDetails returns the details of a server's item, found by its URI,
// template or name.
func (v *directView) itemDetails(ctx context.Context, r *mcpserver.Request, server, name string) (details, bool) {
	x := v.itemsOf(ctx, r)
	if x == nil {
		return details{}, false
	}
	for n, it := range x.items {
		_, own, _ := unalias(it.key)
		if it.server == server && (it.key == name || own == name || n.Tool == name) {
			own, arguments := it.call()
			d := reservedDetails(own)
			d.Kind, d.From, d.Arguments = it.kindName(), it.server, arguments
			d.Title, d.Description = rawjson.FieldString(it.raw, "title"), rawjson.FieldString(it.raw, "description")
			d.Annotations = rawjson.Field(it.raw, "annotations")
			for _, a := range it.promptArguments() {
				d.Parameters = append(d.Parameters, parameter{"arguments." + a.Name, "string", a.Required})
			}
			return d, true
		}
	}
	return details{}, false
}

// reservedDetails returns the details of one of the gateway's own tools.
func reservedDetails(t reserved.Tool) details {
	return details{Server: reserved.Server, Tool: t.Name, Description: t.Description, Parameters: parameters(t.InputSchema), Input: t.InputSchema}
}
