package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"junctor/internal/tool"
)

// Query is a search request.
type Query struct {
	// Text describes the wanted tool in free text, or is its name.
	Text string

	// Servers and Tags restrict the hits to tools of one of these upstreams,
	// and to tools with one of these tags. Empty means no restriction.
	Servers []string
	Tags    []string

	// Limit is the maximum number of hits; 0 means 10, and the maximum is 100.
	Limit int

	// Keep reports whether the caller may see a tool; nil allows all. It is
	// called only for tools that would be among the hits.
	Keep func(tool.Name) bool

	// Signals returns usage and health of a tool; nil disables signals. It is
	// called only for the best tools.
	Signals Signals

	// Explain requests an Explanation for each hit.
	Explain bool
}

// Hit is a tool that was found.
type Hit struct {
	Name tool.Name

	// Relevance is the approximate probability that the tool was meant, between
	// 0 and 1. It is also low for the best hit if that is a weak match.
	Relevance float64

	// Explanation is nil unless Query.Explain is set.
	Explanation *Explanation

	score float32
	named bool // the query is the tool's name
}

// Limits of a query.
const (
	defaultLimit = 10
	MaxLimit     = 100

	maxQueryBytes  = 1 << 13 // the rest of the text is ignored
	maxQueryTokens = 256
	maxQueryTerms  = 32 // the most significant ones
)

// reason is how a term became part of a query.
type reason uint8

const (
	asWritten reason = iota
	asSynonym
	asCorrection
	asCompound
	asPhrase
)

var reasonNames = [...]string{"exact", "synonym", "spelling", "compound", "phrase"}

// named reports whether the query contains the term itself, in any spelling.
func (r reason) named() bool { return r != asSynonym && r != asPhrase }

// alternative is a term that matches a word of the query.
type alternative struct {
	term   uint32
	weight float32
	why    reason
}

// queryWord is one word of the query with all terms that match it.
type queryWord struct {
	text         string
	mass         float32 // its maximum contribution
	importance   float32 // weight in the word table
	cap          float32 // the word's own rarity: the limit for rarer synonyms
	alternatives []alternative
}

// plan is a query prepared for one snapshot.
type plan struct {
	words    []queryWord
	perIdeal float32 // 1 / the sum of all masses
	onlyAsks bool    // tools that change something are ranked lower
	packed   packed
	vector   []uint64
}

// planner prepares plans and reuses its buffers.
type planner struct {
	tok     tokenizer
	tokens  []string // all words of the query
	texts   []string // the significant words, in order
	terms   []string // their stems
	phrases []phrase
	sum     []float32
	plan    plan
}

// prepare parses the text of a query. The plan is valid until the next call.
func (p *planner) prepare(ix *Index, s *snapshot, text string) *plan {
	p.read(ix, s, text)
	p.plan.onlyAsks = len(p.tokens) > 0 && ix.lx.onlyAsks(p.tokens[0], p.terms)
	if p.sum == nil {
		p.sum = make([]float32, ix.table.dims)
		p.plan.vector = make([]uint64, packedWords(ix.table.dims))
	}
	clear(p.sum)
	p.plan.words = p.plan.words[:0]
	for i, term := range p.terms {
		if !slices.Contains(p.terms[:i], term) {
			p.word(ix, s, i)
		}
	}
	for _, ph := range p.phrases {
		p.phrase(ix, s, ph)
	}
	words := p.plan.words
	if len(words) > maxQueryTerms {
		slices.SortStableFunc(words, func(a, b queryWord) int { return cmp.Compare(b.mass, a.mass) })
		words = words[:maxQueryTerms]
		p.plan.words = words
	}
	p.plan.perIdeal = 0
	var ideal float32
	for i := range words {
		ideal += words[i].mass
	}
	if ideal > 0 {
		p.plan.perIdeal = 1 / ideal
	}
	p.plan.packed = pack(p.plan.vector, p.sum, true)
	return &p.plan
}

// read finds the significant words and the phrases of a query. The words of a
// phrase are then not counted themselves.
func (p *planner) read(ix *Index, s *snapshot, text string) {
	if len(text) > maxQueryBytes {
		text = text[:maxQueryBytes]
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
	}
	p.phrases = p.phrases[:0]
	if strings.ContainsAny(text, digits) {
		for _, sum := range ix.sums {
			if sum.written.MatchString(text) {
				p.phrases = append(p.phrases, sum.phrase)
			}
		}
	}
	p.tok.reset()
	p.tok.add(withoutValues(text), false)
	known := func(word string) bool { _, ok := s.terms.find(stemOf(word)); return ok }
	tokens := p.tok.joined(known)
	p.tokens = append(p.tokens[:0], tokens[:min(len(tokens), maxQueryTokens)]...)

	p.texts, p.terms = p.texts[:0], p.terms[:0]
	for i := 0; i < len(p.tokens); i++ {
		if ph, ok := ix.lx.phraseAt(p.tokens[i:]); ok {
			p.phrases = append(p.phrases, ph)
			i += len(ph.words) - 1
		} else if t := p.tokens[i]; !ix.lx.stop[t] {
			p.texts = append(p.texts, t)
			p.terms = append(p.terms, stemOf(t))
		}
	}
}

// next returns a zero queryWord at the end of the plan.
func (p *planner) next(text string) *queryWord {
	n := len(p.plan.words)
	if n < cap(p.plan.words) {
		p.plan.words = p.plan.words[:n+1]
	} else {
		p.plan.words = append(p.plan.words, queryWord{})
	}
	w := &p.plan.words[n]
	*w = queryWord{text: text, alternatives: w.alternatives[:0]}
	return w
}

// phrase adds an idiom as one word whose alternatives are its meanings.
func (p *planner) phrase(ix *Index, s *snapshot, ph phrase) {
	w := p.next(strings.Join(ph.words, " "))
	w.cap = s.rarest
	for _, m := range ph.means {
		w.add(s, stemOf(m), ix.w.synonym, asPhrase)
		if row, ok := ix.table.lookup(m); ok {
			w.importance = max(w.importance, ix.importance(row))
			ix.table.addTo(p.sum, row, ix.table.weight(row)/float32(len(ph.means)))
		}
	}
	for _, a := range w.alternatives {
		w.mass = max(w.mass, w.maxScore(s, a))
	}
}

// importance returns the weight in a query of the word in a row of the table.
func (ix *Index) importance(row int) float32 {
	return float32(math.Pow(float64(ix.table.weight(row)), float64(ix.w.importance)))
}

// word adds word i with all alternatives: corrections, synonyms and compounds.
func (p *planner) word(ix *Index, s *snapshot, i int) {
	w := p.next(p.texts[i])
	row, inTable := ix.table.lookup(w.text)
	known := w.add(s, p.terms[i], 1, asWritten)
	trust := float32(1)
	meant := p.terms[i]
	if !known && !inTable && !strings.ContainsAny(w.text, digits) {
		if id, ok := s.correct(w.text, meant); ok {
			meant = s.terms.terms[id]
			trust = ix.w.typo
			w.add(s, meant, trust, asCorrection)
			row, inTable = ix.table.lookup(s.terms.forms[id])
		} else {
			parts := ix.table.split(w.text)
			for _, part := range parts {
				w.add(s, stemOf(part), ix.w.joined/float32(len(parts)), asCompound)
				if r, ok := ix.table.find(part); ok {
					ix.table.addTo(p.sum, r, ix.table.weight(r))
				}
			}
		}
	}
	for _, synonym := range ix.lx.synonyms[meant] {
		w.add(s, synonym, trust*ix.w.synonym, asSynonym)
	}
	// Two words of the query may be one word of a tool: key vault, keyvault.
	if i > 0 {
		w.add(s, stemOf(p.texts[i-1]+p.texts[i]), ix.w.joined, asCompound)
	}
	if i+1 < len(p.texts) {
		w.add(s, stemOf(p.texts[i]+p.texts[i+1]), ix.w.joined, asCompound)
	}
	w.importance = 1
	if inTable {
		w.importance = ix.importance(row)
	}
	if isNumber(w.text) {
		w.importance *= ix.w.number
	}
	w.cap = s.rarest
	if known {
		w.cap = s.idf[w.alternatives[0].term]
	}
	for _, a := range w.alternatives {
		w.mass = max(w.mass, w.maxScore(s, a))
	}
	if len(w.alternatives) == 0 && inTable {
		w.mass = w.importance * s.rarest * ix.w.unknown
	}
	if inTable {
		ix.table.addTo(p.sum, row, ix.table.weight(row))
	}
}

// maxScore returns the maximum score of an alternative.
func (w *queryWord) maxScore(s *snapshot, a alternative) float32 {
	return w.importance * a.weight * min(w.cap, s.idf[a.term])
}

// add adds a term as an alternative, unless no tool contains it. It reports
// whether the term is an alternative.
func (w *queryWord) add(s *snapshot, term string, weight float32, why reason) bool {
	id, ok := s.terms.find(term)
	if !ok || s.idf[id] == 0 {
		return false
	}
	for _, a := range w.alternatives {
		if a.term == id {
			return true
		}
	}
	w.alternatives = append(w.alternatives, alternative{term: id, weight: weight, why: why})
	return true
}
