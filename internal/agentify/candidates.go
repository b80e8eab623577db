package agentify

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"junctor/internal/catalog"
	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/search"
	"junctor/internal/tool"
)

// The number of tools in a model request. The first maxCandidates are declared
// completely; the next maxFurther are listed in one line each, and the model
// may request their declarations. docs/agentify.md has the recall at these
// numbers.
const (
	maxCandidates = 25
	maxFurther    = 50

	// contextCandidates of the candidates are reserved for tools that match
	// what the user is looking at.
	contextCandidates = 6

	// maxDeclared bounds the bytes of all declarations, in case tools have very
	// large schemas. A model with a small context window gets less.
	maxDeclared = 192 << 10
)

// budget returns the maximum size of the declarations for a model, in bytes: at
// most half of its context window.
func budget(info llm.Info) int {
	const bytesPerToken = 3.5
	if info.ContextWindow <= 0 {
		return maxDeclared
	}
	return min(maxDeclared, int(float64(info.ContextWindow)*bytesPerToken/2))
}

// Candidate is a tool that may be what a task asks for.
type Candidate struct {
	Name      tool.Name `json:"tool"`
	Relevance float64   `json:"relevance"` // about the probability that it was meant

	entry *catalog.Entry
}

// candidates ranks the tools that the caller may use. offered are declared
// completely; further are the next best. wanted are tools that the model
// requested; they come first. room bounds the bytes of the offered tools,
// except that the last one may exceed it.
func (f *Face) candidates(snap *catalog.Snapshot, caller *tool.Caller, t Task, room int, wanted ...string) (offered, further []Candidate, err error) {
	seen := map[tool.Name]bool{}
	size := 0
	take := func(list []Candidate, c Candidate) []Candidate {
		if seen[c.Name] || c.entry == nil || isOwn(c.Name) {
			return list
		}
		seen[c.Name] = true
		size += len(c.entry.Raw)
		return append(list, c)
	}
	full := func() bool { return len(offered) >= maxCandidates || size >= room && len(offered) > 0 }

	for _, name := range wanted {
		if server, bare, ok := strings.Cut(name, "__"); ok && !strings.Contains(name, ":") {
			name = server + ":" + bare // as tools are declared
		}
		if e, err := snap.Resolve(caller, "", name); err == nil && e.Enabled && !full() {
			offered = take(offered, Candidate{Name: e.Name, entry: e})
		}
	}
	hits, err := f.find(snap, caller, t.Query, maxCandidates+maxFurther)
	if err != nil {
		return nil, nil, err
	}
	var near []Candidate
	if hints := t.Context.words(); hints != "" {
		if near, err = f.find(snap, caller, t.Query+" "+hints, contextCandidates); err != nil {
			return nil, nil, err
		}
	}
	for _, c := range hits {
		if len(offered) < maxCandidates-len(near) && !full() {
			offered = take(offered, c)
		}
	}
	for _, c := range slices.Concat(near, hits) {
		if !full() {
			offered = take(offered, c)
		}
	}
	// A small catalogue is sent completely: the model may understand words that
	// no tool contains, for example in another language.
	if visible(snap, caller) <= maxCandidates {
		for e := range snap.Visible(caller) {
			if !full() {
				offered = take(offered, Candidate{Name: e.Name, entry: e})
			}
		}
	}
	for _, c := range hits {
		if len(further) < maxFurther {
			further = take(further, c)
		}
	}
	return offered, further, nil
}

// visible counts the tools that the caller may use.
func visible(snap *catalog.Snapshot, caller *tool.Caller) int {
	n := 0
	for range snap.Visible(caller) {
		n++
	}
	return n
}

// find ranks the tools that the caller may use for a text.
func (f *Face) find(snap *catalog.Snapshot, caller *tool.Caller, text string, limit int) ([]Candidate, error) {
	found, err := f.opts.Tools.Search(snap, caller, listing.Filter{}, search.Query{Text: text, Limit: limit})
	if err != nil {
		return nil, err
	}
	list := make([]Candidate, 0, len(found))
	for _, m := range found {
		list = append(list, Candidate{Name: m.Name, Relevance: m.Relevance, entry: m.Entry})
	}
	return list, nil
}

// words returns the text that the context adds to a search: the open document's
// name and type, and the beginning of the selection.
func (c Context) words() string {
	var parts []string
	if u, err := url.Parse(c.ActiveDocumentURI); err == nil && u.Scheme != "" {
		switch u.Scheme {
		case "http", "https":
			parts = append(parts, "web page", u.Hostname())
		default:
			parts = append(parts, u.Scheme, path.Base(u.Path), strings.TrimPrefix(path.Ext(u.Path), "."))
		}
	}
	if c.SelectionText != "" {
		parts = append(parts, strings.ToValidUTF8(c.SelectionText[:min(len(c.SelectionText), 300)], ""))
	}
	return strings.Join(parts, " ")
}

// suggestions returns the best candidates for a refusal.
func suggestions(candidates []Candidate) []Suggestion {
	var list []Suggestion
	for _, c := range candidates[:min(5, len(candidates))] {
		list = append(list, Suggestion{Tool: c.Name.String(), Summary: c.entry.Summary(120), Relevance: round(c.Relevance)})
	}
	return list
}

func round(x float64) float64 { return float64(int(x*1000+0.5)) / 1000 }
