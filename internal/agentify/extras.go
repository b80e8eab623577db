package agentify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/search"
	"junctor/internal/tool"
)

// Limits of the resources and prompts of backends.
const (
	maxExtras   = 12 // in one model request
	maxListed   = 500
	maxPages    = 5
	listsAtOnce = 8
	listTimeout = 5 * time.Second // for all lists; later ones are omitted
	listTTL     = time.Minute
	maxCallers  = 32 // whose lists are cached
)

// extraKind is the kind of an extra.
type extraKind int

const (
	aResource extraKind = iota
	aTemplate
	aPrompt
)

// extraLists has the list method of each kind.
var extraLists = [...]struct{ method, capability, member, key string }{
	aResource: {mcp.MethodResourcesList, "resources", "resources", "uri"},
	aTemplate: {mcp.MethodTemplatesList, "resources", "resourceTemplates", "uriTemplate"},
	aPrompt:   {mcp.MethodPromptsList, "prompts", "prompts", "name"},
}

// extra is a resource, a template of resources or a prompt of one backend.
type extra struct {
	server string
	kind   extraKind
	key    string // uri, template or name
	title  string
	text   string           // its description
	args   []promptArgument // of a prompt
}

type promptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// extras are the lists for one caller. They are never shared between callers,
// because a backend may return different lists to each.
type extras struct {
	at    time.Time
	items []extra
	index *search.Index // nil when all items fit into a request
}

// extras returns the resources, templates and prompts that the caller can use:
// all of them, or the maxExtras most relevant to the task if there are more.
func (f *Face) extras(ctx context.Context, caller *tool.Caller, t Task) []extra {
	f.mu.Lock()
	l := f.lists[caller.RightsView()]
	f.mu.Unlock()
	if l == nil || time.Since(l.at) > listTTL {
		l = f.list(ctx, caller)
		f.mu.Lock()
		maps.DeleteFunc(f.lists, func(_ string, old *extras) bool { return time.Since(old.at) > listTTL })
		if len(f.lists) >= maxCallers {
			clear(f.lists)
		}
		f.lists[caller.RightsView()] = l
		f.mu.Unlock()
	}
	return l.rank(t)
}

func (l *extras) rank(t Task) []extra {
	if l.index == nil {
		return l.items
	}
	hits, err := l.index.Search(search.Query{Text: t.Query, Limit: maxExtras})
	if err != nil {
		return nil
	}
	var found []extra
	for _, h := range hits {
		i := slices.IndexFunc(l.items, func(e extra) bool { return e.name() == h.Name })
		if i >= 0 {
			found = append(found, l.items[i])
		}
	}
	return found
}

func (e extra) name() tool.Name {
	return tool.Name{Server: e.server, Tool: extraLists[e.kind].capability + " " + e.key}
}

// list requests the lists of all connected backends that support them.
func (f *Face) list(ctx context.Context, caller *tool.Caller) *extras {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	type listRequest struct {
		server string
		kind   extraKind
	}
	var requests []listRequest
	for _, st := range f.opts.Tools.Servers(caller) {
		info, ok := f.opts.Upstreams.Info(st.Name, caller.ID)
		if !ok {
			continue
		}
		for k, d := range extraLists {
			if rawjson.Field(info.Capabilities, d.capability) != nil {
				requests = append(requests, listRequest{st.Name, extraKind(k)})
			}
		}
	}
	found := make([][]extra, len(requests))
	gate := make(chan struct{}, listsAtOnce)
	var wg sync.WaitGroup
	for i, w := range requests {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			found[i] = f.pages(ctx, caller, w.server, w.kind)
		})
	}
	wg.Wait()
	l := &extras{at: time.Now(), items: slices.Concat(found...)}
	if len(l.items) > maxExtras {
		l.index = search.New()
		docs := map[string][]search.Doc{}
		for _, e := range l.items {
			docs[e.server] = append(docs[e.server], search.Doc{Name: e.name(), Title: e.title, Description: e.text})
		}
		for server, d := range docs {
			l.index.Put(server, d)
		}
	}
	return l
}

// pages reads one list of one backend. If a request fails, it returns the items
// read so far.
func (f *Face) pages(ctx context.Context, caller *tool.Caller, server string, k extraKind) []extra {
	d := extraLists[k]
	var items []extra
	params := json.RawMessage(`{}`)
	for range maxPages {
		result, err := f.opts.Calls.Forward(ctx, tool.Forward{Face: "agentify", Caller: *caller, Server: server, Method: d.method, Params: params})
		if err != nil {
			f.log.DebugContext(ctx, "cannot read a list; skipping it", "server", server, "method", d.method, "err", err)
			break
		}
		for item := range rawjson.Elements(rawjson.Field(result, d.member)) {
			e := extra{server: server, kind: k, key: rawjson.FieldString(item, d.key), text: tool.OneLine(rawjson.FieldString(item, "description"))}
			e.title = cmp.Or(rawjson.FieldString(item, "title"), rawjson.FieldString(item, "name"))
			if k == aPrompt {
				_ = json.Unmarshal(rawjson.Field(item, "arguments"), &e.args) // arguments that cannot be parsed are ignored
			}
			if e.key != "" && len(e.key) <= 2048 && len(items) < maxListed && !(k == aPrompt && e.key == "tool-descriptions") {
				items = append(items, e)
			}
		}
		cursor := rawjson.FieldString(result, "nextCursor")
		if cursor == "" || len(items) >= maxListed {
			break
		}
		params = rawjson.MarshalOrNull(map[string]string{"cursor": cursor})
	}
	return items
}

// line describes an extra to the model.
func (e extra) line() string {
	s := fmt.Sprintf("- backend %s, %s", e.server, e.key)
	if about := strings.TrimSpace(tool.Shorten(tool.OneLine(e.title), 60) + ". " + tool.Shorten(e.text, 120)); about != "." {
		s += ": " + strings.Trim(about, ". ")
	}
	for _, a := range e.args {
		s += fmt.Sprintf(" [argument %s", a.Name)
		if a.Required {
			s += ", required"
		}
		if a.Description != "" {
			s += ": " + tool.Shorten(tool.OneLine(a.Description), 80)
		}
		s += "]"
	}
	return s
}

// matches reports whether uri is the URI of the resource, or an expansion of
// the template.
func (e extra) matches(uri string) bool {
	if e.kind == aResource {
		return uri == e.key
	}
	if e.kind != aTemplate || len(uri) > 8192 {
		return false
	}
	if u, err := url.Parse(uri); err != nil || u.Scheme == "" {
		return false
	}
	var pattern strings.Builder
	rest := e.key
	for {
		before, after, ok := strings.Cut(rest, "{")
		pattern.WriteString(regexp.QuoteMeta(before))
		if !ok {
			break
		}
		variable, tail, closed := strings.Cut(after, "}")
		if !closed {
			return false
		}
		switch {
		case strings.HasPrefix(variable, "?"), strings.HasPrefix(variable, "&"), strings.HasPrefix(variable, "#"):
			pattern.WriteString(`([?&#].*)?`) // optional
		case strings.HasPrefix(variable, "+"), strings.HasPrefix(variable, "/"), strings.HasSuffix(variable, "*"):
			pattern.WriteString(`.+`)
		default:
			pattern.WriteString(`[^/?#{}]+`)
		}
		rest = tail
	}
	re, err := regexp.Compile("^(?:" + pattern.String() + ")$")
	return err == nil && re.MatchString(uri)
}
