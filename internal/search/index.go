package search

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"junctor/internal/tool"
)

// Doc is the searchable part of a tool.
type Doc struct {
	Name        tool.Name
	Title       string
	Description string
	InputSchema json.RawMessage
	Tags        []string
	ReadOnly    *bool // the upstream's readOnlyHint; nil if not given

	// The upstream's description of itself; may be empty.
	ServerTitle       string
	ServerDescription string
}

// Index is a search index of the tools of all upstreams. Its methods are safe
// for concurrent use.
type Index struct {
	w     weights
	lx    *lexicon
	sums  []sum
	table *wordTable

	background int // number of documents outside this index that count for the rarity of words

	analysers sync.Pool
	scratches sync.Pool

	mu       sync.Mutex // guards the fields below; never held while a query runs
	terms    *dictionary
	segments map[string]*segment
	live     atomic.Pointer[snapshot] // nil after a change, until the next query
}

// segment is the analysed tools of one upstream.
type segment struct {
	tools   []segmentTool
	entries []entry  // of all tools, concatenated
	vectors []uint64 // the same number of words for each tool
}

type segmentTool struct {
	name    tool.Name
	tags    []string
	changes bool
	entries int // number of entries
	vector  packed
}

// New returns an empty index.
func New() *Index { return newIndex(defaultWeights()) }

func newIndex(w weights) *Index {
	table, err := loadTable(tableFile)
	if err != nil {
		panic(err) // cannot happen: the file is embedded, and a test loads it
	}
	return emptyIndex(w, loadLexicon(thesaurusFile, stopFile, verbFile, phraseFile), arithmetic(), table)
}

func emptyIndex(w weights, lx *lexicon, sums []sum, table *wordTable) *Index {
	ix := &Index{w: w, lx: lx, sums: sums, table: table, terms: newDictionary(), segments: make(map[string]*segment)}
	ix.analysers.New = func() any { return newAnalyser(w, lx, table) }
	ix.scratches.New = func() any { return new(scratch) }
	return ix
}

// backgroundDocs is the background of an index returned by [Index.Supplement].
const backgroundDocs = 1000

// Supplement returns an empty index for a few documents that are searched in
// addition to those of ix. The rarity of words is computed as if there were
// backgroundDocs more documents without them, so that the relevance of hits is
// comparable to that of ix. It shares the word table of ix.
func (ix *Index) Supplement() *Index {
	own := emptyIndex(ix.w, ix.lx, ix.sums, ix.table)
	own.background = backgroundDocs
	return own
}

// Put replaces the tools of one upstream. It does not retain docs. If several
// docs have the same name, the first is used.
func (ix *Index) Put(server string, docs []Doc) {
	docs = unique(docs)
	a := ix.analysers.Get().(*analyser)
	words := packedWords(ix.table.dims)
	seg := &segment{
		tools:   make([]segmentTool, len(docs)),
		vectors: make([]uint64, words*len(docs)),
	}
	for i := range docs {
		entries, sum := a.tool(&docs[i])
		seg.entries = append(seg.entries, entries...)
		seg.tools[i] = segmentTool{
			name:    docs[i].Name,
			tags:    slices.Clone(docs[i].Tags),
			changes: a.changes(&docs[i]),
			entries: len(entries),
			vector:  pack(seg.vectors[i*words:(i+1)*words], sum, false),
		}
	}
	seg.entries = slices.Clip(seg.entries)

	ix.mu.Lock()
	defer ix.mu.Unlock()
	numbers := make([]uint32, len(a.terms.terms)) // 1 + the term number in the index
	for i := range seg.entries {
		n := &numbers[seg.entries[i].term]
		if *n == 0 {
			local := seg.entries[i].term
			*n = 1 + ix.terms.add(a.terms.terms[local], a.terms.forms[local])
		}
		seg.entries[i].term = *n - 1
	}
	ix.segments[server] = seg
	ix.live.Store(nil)
	if !a.full() {
		ix.analysers.Put(a)
	}
}

// unique returns docs without later duplicates of a name.
func unique(docs []Doc) []Doc {
	seen := make(map[tool.Name]bool, len(docs))
	return slices.DeleteFunc(slices.Clone(docs), func(d Doc) bool {
		again := seen[d.Name]
		seen[d.Name] = true
		return again
	})
}

// Remove removes the tools of one upstream.
func (ix *Index) Remove(server string) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if _, ok := ix.segments[server]; ok {
		delete(ix.segments, server)
		ix.live.Store(nil)
	}
}

// Len returns the number of tools.
func (ix *Index) Len() int { return len(ix.current().names) }

// current returns the snapshot after the last change. It is assembled by the
// first query after a change, so that several updates in a row cost little.
func (ix *Index) current() *snapshot {
	if s := ix.live.Load(); s != nil {
		return s
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if s := ix.live.Load(); s != nil {
		return s
	}
	ix.forget()
	s := ix.assemble()
	ix.live.Store(s)
	return s
}

// forget renumbers the terms when most of them belong to removed tools.
func (ix *Index) forget() {
	const minTerms = 1 << 12
	total := len(ix.terms.terms)
	if total < minTerms {
		return
	}
	numbers := make([]uint32, total)
	used := 0
	for _, seg := range ix.segments {
		for _, e := range seg.entries {
			if numbers[e.term] == 0 {
				numbers[e.term] = 1
				used++
			}
		}
	}
	if used > total/2 {
		return
	}
	terms := newDictionary()
	for i, n := range numbers {
		if n != 0 {
			numbers[i] = terms.add(ix.terms.terms[i], ix.terms.forms[i])
		}
	}
	ix.terms = terms
	for server, seg := range ix.segments {
		moved := *seg // an older snapshot may still read the entries
		moved.entries = slices.Clone(seg.entries)
		for i := range moved.entries {
			moved.entries[i].term = numbers[moved.entries[i].term]
		}
		ix.segments[server] = &moved
	}
}
