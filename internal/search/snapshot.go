package search

import (
	"maps"
	"math"
	"slices"

	"junctor/internal/tool"
)

// snapshot is the immutable state of the index between two changes.
type snapshot struct {
	terms *dictionary
	idf   []float32 // by term; 0 for a term without tools
	start []uint32  // by term: the offset of its postings, and one entry for the end

	postings []posting
	letters  []uint32  // by term: the set of its letters, for corrections
	product  []float32 // by term: how specific it is to the names of servers, 0 to 1

	// By tool.
	names    []tool.Name
	tags     [][]string
	nameHash []uint32
	changes  []bool
	covers   []float32 // the share of its name covered by one unit of weight
	vector   []packed
	vectors  []uint64
	entries  []entry
	first    []uint32 // the offset of its entries, and one entry for the end

	rarest float32 // the weight of a word that no tool contains
}

// posting is one tool in the list of a term: the tool's number, whether the
// term occurs in its name and in its server's name, and the impact.
type posting uint32

const (
	postingName   = 1 << 8
	postingServer = 1 << 9
	postingShift  = 10
	maxTools      = 1 << (32 - postingShift)
)

func (p posting) tool() uint32   { return uint32(p) >> postingShift }
func (p posting) impact() uint8  { return uint8(p) }
func (p posting) inName() bool   { return p&postingName != 0 }
func (p posting) inServer() bool { return p&postingServer != 0 }

// assemble builds a snapshot from the segments. Tools are ordered by the names
// of their upstreams, so that the result does not depend on the order of
// insertion.
func (ix *Index) assemble() *snapshot {
	tools, entries := 0, 0
	servers := slices.Sorted(maps.Keys(ix.segments))
	for i, server := range servers {
		seg := ix.segments[server]
		if tools+len(seg.tools) > maxTools {
			servers = servers[:i]
			break
		}
		tools += len(seg.tools)
		entries += len(seg.entries)
	}
	words := packedWords(ix.table.dims)
	s := &snapshot{
		terms:    ix.terms.frozen(),
		names:    make([]tool.Name, 0, tools),
		tags:     make([][]string, 0, tools),
		nameHash: make([]uint32, 0, tools),
		changes:  make([]bool, 0, tools),
		vector:   make([]packed, 0, tools),
		vectors:  make([]uint64, 0, tools*words),
		entries:  make([]entry, 0, entries),
		first:    make([]uint32, 0, tools+1),
		covers:   make([]float32, tools),
		rarest:   idf(tools+ix.background, 0),
	}
	for _, server := range servers {
		seg := ix.segments[server]
		at := len(s.entries)
		for _, t := range seg.tools {
			s.names = append(s.names, t.name)
			s.tags = append(s.tags, t.tags)
			s.nameHash = append(s.nameHash, nameHash(t.name.Tool))
			s.changes = append(s.changes, t.changes)
			s.vector = append(s.vector, t.vector)
			s.first = append(s.first, uint32(at))
			at += t.entries
		}
		// The segment now refers to the snapshot's memory, so that there is one
		// copy.
		s.entries = append(s.entries, seg.entries...)
		s.vectors = append(s.vectors, seg.vectors...)
		seg.entries = s.entries[len(s.entries)-len(seg.entries):]
		seg.vectors = s.vectors[len(s.vectors)-len(seg.vectors):]
	}
	s.first = append(s.first, uint32(len(s.entries)))
	s.invert(ix.w.namePrior, ix.background)
	return s
}

// invert computes the postings from the entries.
func (s *snapshot) invert(namePrior float32, background int) {
	terms := len(s.terms.terms)
	s.start = make([]uint32, terms+1)
	s.idf = make([]float32, terms)
	s.letters = make([]uint32, terms)
	s.product = make([]float32, terms)
	for _, e := range s.entries {
		s.start[e.term+1]++
		if e.fields&inServer != 0 {
			s.product[e.term]++
		}
	}
	for t := range terms {
		if n := int(s.start[t+1]); n > 0 {
			s.idf[t] = idf(len(s.names)+background, n)
			s.letters[t] = letters(s.terms.terms[t])
			s.product[t] = product(s.product[t] / float32(n))
		}
		s.start[t+1] += s.start[t]
	}
	s.postings = make([]posting, len(s.entries))
	next := slices.Clone(s.start[:terms])
	for t := range s.names {
		mass := namePrior
		for _, e := range s.entries[s.first[t]:s.first[t+1]] {
			p := posting(t<<postingShift | int(e.impact))
			if e.fields&inName != 0 {
				p |= postingName
				mass += s.idf[e.term]
			}
			if e.fields&inServer != 0 {
				p |= postingServer
			}
			s.postings[next[e.term]] = p
			next[e.term]++
		}
		s.covers[t] = 1 / mass
	}
}

// idf returns the weight of a term that n of all tools contain.
func idf(all, n int) float32 {
	return float32(math.Log(1 + (float64(all-n)+0.5)/(float64(n)+0.5)))
}

// product distinguishes the name of a product from a common word in the name of
// a server. share is the share of the tools with the word that are on such
// servers: nearly all for "figma", few for "search".
func product(share float32) float32 {
	const minShare = 0.8
	return max(0, (share-minShare)/(1-minShare))
}

// list returns the postings of a term.
func (s *snapshot) list(term uint32) []posting {
	return s.postings[s.start[term]:s.start[term+1]]
}

// toolEntries returns the terms of a tool.
func (s *snapshot) toolEntries(t uint32) []entry {
	return s.entries[s.first[t]:s.first[t+1]]
}
