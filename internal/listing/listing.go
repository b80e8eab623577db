// Package listing lists and searches the tools that a caller may see, for all
// APIs. It also provides the state of servers, and the tools in the formats of
// model providers.
//
// One [Service] is shared by all APIs and listeners, so that their responses agree
// and translations are cached once. It reads the catalogue, the search index and
// the state of the upstreams; it calls no tool and changes nothing.
package listing

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"junctor/internal/catalog"
	"junctor/internal/provider"
	"junctor/internal/search"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Searcher finds tools by text.
type Searcher interface {
	Search(q search.Query) ([]search.Hit, error)
}

// Upstreams provides the state of the servers.
type Upstreams interface {
	Status() []upstream.Status
	StatusOf(server string) (upstream.Status, bool)
	Connecting() []string
	Await(ctx context.Context, servers ...string) (pending []string)
}

// Logins provides the servers for which each caller has its own login and
// therefore its own list of tools.
type Logins interface {
	// LoadCallerTools loads the lists of tools for a caller's own logins.
	LoadCallerTools(ctx context.Context, caller string, servers ...string)
	// StatusForCaller returns a status as a caller sees it.
	StatusForCaller(st upstream.Status, caller string) upstream.Status
}

// Options are the dependencies of a Service.
type Options struct {
	Catalog   *catalog.Catalog
	Search    Searcher
	Upstreams Upstreams
	Logins    Logins                        // nil if callers have no logins of their own
	Usage     func(tool.Name) search.Signal // usage and health of a tool, for the ranking; nil ranks without
}

// Service lists and searches tools. It is safe for concurrent use.
type Service struct {
	opts Options

	mu         sync.Mutex
	translated *catalog.Snapshot // from which tools was created
	tools      *provider.Tools
}

// New returns a Service.
func New(o Options) *Service { return &Service{opts: o} }

// Snapshot returns the current tools.
func (s *Service) Snapshot() *catalog.Snapshot { return s.opts.Catalog.Snapshot() }

// Watch returns a channel that receives after the tools have changed, until ctx
// is done.
func (s *Service) Watch(ctx context.Context) <-chan struct{} { return s.opts.Catalog.Watch(ctx) }

// Starting returns the servers that the caller may see, that are making their
// first connection and whose tools are not known yet. With names, only those
// are considered.
func (s *Service) Starting(caller *tool.Caller, names ...string) []string {
	snap := s.Snapshot()
	return slices.DeleteFunc(s.opts.Upstreams.Connecting(), func(name string) bool {
		return !caller.MaySee(name) || snap.Server(name) != nil || len(names) > 0 && !slices.Contains(names, name)
	})
}

// Await waits for the servers that are [Service.Starting], each up to its start
// timeout, and returns those that are still pending.
func (s *Service) Await(ctx context.Context, caller *tool.Caller, names ...string) (pending []string) {
	s.LoadCallerTools(ctx, caller, names...)
	if wait := s.Starting(caller, names...); len(wait) > 0 {
		return s.opts.Upstreams.Await(ctx, wait...)
	}
	return nil
}

// LoadCallerTools loads the caller's lists of tools from servers for which each
// caller has its own login. Await does this, too.
func (s *Service) LoadCallerTools(ctx context.Context, caller *tool.Caller, names ...string) {
	if s.opts.Logins != nil {
		s.opts.Logins.LoadCallerTools(ctx, caller.ID, names...)
	}
}

func (s *Service) statusForCaller(st upstream.Status, caller *tool.Caller) upstream.Status {
	if s.opts.Logins == nil {
		return st
	}
	return s.opts.Logins.StatusForCaller(st, caller.ID)
}

// Filter restricts a list. Fields without a value restrict nothing.
type Filter struct {
	Servers []string
	Tools   []string // by their unqualified names
	Tags    []string // a tool needs one of them

	// Disabled includes disabled tools.
	Disabled bool
	// AppsOnly includes tools that are not for models.
	AppsOnly bool
	// Keep restricts the list further.
	Keep func(*catalog.Entry) bool
}

func (f Filter) keeps(caller *tool.Caller, e *catalog.Entry) bool {
	return (e.Enabled || f.Disabled) && (f.AppsOnly || !e.UI.AppsOnly) && e.UsableBy(caller) &&
		(len(f.Servers) == 0 || slices.Contains(f.Servers, e.Name.Server)) &&
		(len(f.Tools) == 0 || slices.Contains(f.Tools, e.Name.Tool)) &&
		(len(f.Tags) == 0 || slices.ContainsFunc(f.Tags, func(t string) bool { return slices.Contains(e.Tags, t) })) &&
		(f.Keep == nil || f.Keep(e))
}

// List returns the tools that the caller may use and that match, in the order
// of the catalogue.
func (s *Service) List(snap *catalog.Snapshot, caller *tool.Caller, f Filter) iter.Seq[*catalog.Entry] {
	return func(yield func(*catalog.Entry) bool) {
		for _, server := range snap.Servers() {
			for _, e := range server.Tools {
				if f.keeps(caller, e) && !yield(e) {
					return
				}
			}
		}
	}
}

// Match is a tool that a search found.
type Match struct {
	*catalog.Entry
	Relevance   float64
	Explanation *search.Explanation // nil unless it was requested
}

// Search returns the tools that the caller may use and that match, best first.
// The search index may be newer than snap; its tools are still those of snap.
// Of the query only the text, the limit and Explain are used.
func (s *Service) Search(snap *catalog.Snapshot, caller *tool.Caller, f Filter, q search.Query) ([]Match, error) {
	q.Servers, q.Tags, q.Signals = f.Servers, f.Tags, s.signals(snap)
	q.Keep = func(n tool.Name) bool {
		e := snap.Lookup(n)
		return e != nil && f.keeps(caller, e)
	}
	hits, err := s.opts.Search.Search(q)
	if err != nil {
		return nil, err
	}
	found := make([]Match, 0, len(hits))
	for _, h := range hits {
		if e := snap.Lookup(h.Name); e != nil {
			found = append(found, Match{e, h.Relevance, h.Explanation})
		}
	}
	return found, nil
}

func (s *Service) signals(snap *catalog.Snapshot) search.Signals {
	if s.opts.Usage == nil {
		return nil
	}
	down := map[string]bool{}
	for _, st := range s.opts.Upstreams.Status() {
		down[st.Name] = st.State != upstream.Connected && st.State != upstream.Connecting
	}
	return func(n tool.Name) search.Signal {
		original := n
		if e := snap.Lookup(n); e != nil {
			original = e.Original.Name
		}
		signal := s.opts.Usage(original)
		signal.Down = down[n.Server]
		if e := snap.Lookup(n); e != nil {
			signal.Deprecated = isDeprecated(e.Description)
		}
		return signal
	}
}

// isDeprecated reports whether a description begins with a note that the tool
// is deprecated, like those of OpenAPI operations.
func isDeprecated(description string) bool {
	const word = "deprecated"
	start := strings.TrimLeft(description[:min(len(description), 40)], " \t\r\n[(*_!-")
	return len(start) >= len(word) && strings.EqualFold(start[:len(word)], word)
}

// ProviderTools returns the current tools and their translation into the formats
// of providers. It is created once for each version of the catalogue and reuses
// unchanged tools. Disabled tools are included: a model may still call one in
// an old conversation, and should get the actual error.
func (s *Service) ProviderTools() (*catalog.Snapshot, *provider.Tools) {
	snap := s.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.translated == snap {
		return snap, s.tools
	}
	defs := make([]tool.Definition, 0, snap.Len())
	for _, server := range snap.Servers() {
		for _, e := range server.Tools {
			defs = append(defs, e.Definition)
		}
	}
	tools := provider.NewTools(defs, s.tools)
	if s.translated == nil || s.translated.Version < snap.Version { // another request may have stored a newer one
		s.translated, s.tools = snap, tools
	}
	return snap, tools
}
