package search

import (
	"math"
	"strings"
)

// The fields of a tool in which a term was found, as bits.
const (
	inName = 1 << iota
	inTitle
	inServer
	inDescription
	inParameter
	inTag
	inServerText
)

// fieldNames are the names of the fields in an explanation, in the order of
// their bits.
var fieldNames = [...]string{"name", "title", "server", "description", "parameter", "tag", "server description"}

// entry is one term of one tool.
type entry struct {
	term   uint32
	impact uint8 // the weight of the term in this tool; at most 255
	fields uint8
}

// analyser turns tools into terms and vectors. It caches words from one tool to
// the next. It is not safe for concurrent use.
type analyser struct {
	w     weights
	lx    *lexicon
	table *wordTable

	tok   tokenizer
	known map[string]int32 // word to its index in words
	words []word
	terms *dictionary // term numbers of this analyser, not of the index

	// The state of the current tool.
	counts  []count // by term
	seen    []uint32
	meaning []float32 // by word: its weight in the vector
	used    []int32
	sum     []float32
	entries []entry
}

// word is a cached word in its written form.
type word struct {
	stop  bool
	noise bool // carries no information in the name of a server
	term  uint32
	row   int32   // in the table, or -1
	parts []int32 // the words that it is a compound of
}

type count struct {
	tf     float32
	fields uint8
}

// maxKnownWords bounds the words that an analyser caches.
const maxKnownWords = 1 << 16

func newAnalyser(w weights, lx *lexicon, table *wordTable) *analyser {
	return &analyser{
		w: w, lx: lx, table: table,
		known: make(map[string]int32),
		terms: newDictionary(),
		sum:   make([]float32, table.dims),
	}
}

// word returns the index of a word in a.words and adds it if it is new.
func (a *analyser) word(text string) int32 {
	if i, ok := a.known[text]; ok {
		return i
	}
	w := word{
		stop:  a.lx.stop[text],
		noise: text == "mcp" || text == "server" || text == "servers",
		row:   -1,
	}
	text = strings.Clone(text)
	w.term = a.terms.add(stemOf(text), text)
	if i, ok := a.table.lookup(text); ok {
		w.row = int32(i)
	} else if !w.stop {
		for _, p := range a.table.split(text) {
			w.parts = append(w.parts, a.word(p))
		}
	}
	i := int32(len(a.words))
	a.words = append(a.words, w)
	a.meaning = append(a.meaning, 0)
	a.known[text] = i
	for len(a.counts) < len(a.terms.terms) {
		a.counts = append(a.counts, count{})
	}
	return i
}

// field adds the words of one text. Each word counts weight, and adds meaning
// to the vector. typical is the typical length of the field, or 0 if length does
// not matter.
func (a *analyser) field(text string, in uint8, weight, meaning, typical float32) {
	if text == "" {
		return
	}
	a.tok.reset()
	identifier := in == inName || in == inServer || in == inParameter && typical == typicalParameterNames
	a.tok.add(text, identifier)
	if typical > 0 {
		n := float32(0)
		for _, t := range a.tok.tokens {
			if !a.lx.stop[t] {
				n++
			}
		}
		weight /= 1 - a.w.length + a.w.length*n/typical
	}
	for _, t := range a.tok.tokens {
		i := a.word(t)
		w := a.words[i]
		if w.stop || w.noise && in&(inServer|inServerText) != 0 {
			continue
		}
		if w.parts == nil || in != inName && in != inServer {
			a.count(w.term, in, weight)
			a.addMeaning(i, meaning)
			continue
		}
		// The parts make up the name. The whole word can be found, but does not
		// add to the length of the name.
		a.count(w.term, in&^inName, weight)
		for _, p := range w.parts {
			if part := a.words[p]; !part.stop && !(part.noise && in == inServer) {
				a.count(part.term, in, weight)
				a.addMeaning(p, meaning)
			}
		}
	}
}

func (a *analyser) count(term uint32, in uint8, weight float32) {
	c := &a.counts[term]
	if c.tf == 0 {
		a.seen = append(a.seen, term)
	}
	c.tf += weight
	c.fields |= in
}

func (a *analyser) addMeaning(word int32, by float32) {
	row := a.words[word].row
	if row < 0 || by == 0 {
		return
	}
	if a.meaning[word] == 0 {
		a.used = append(a.used, word)
	}
	a.meaning[word] += by * a.table.weight(int(row))
}

// maxMeaningBytes is how much of a description is used for the tool's vector. What
// follows (notes, formats, permissions) is usually about something else: its words
// are indexed, but do not change the vector.
const maxMeaningBytes = 300

// tool analyses one tool. The entries contain term numbers of the analyser. The
// entries and the vector are valid until the next call.
func (a *analyser) tool(d *Doc) ([]entry, []float32) {
	w := &a.w
	a.field(d.Name.Tool, inName, w.name, w.vectorName, 0)
	if d.Title != d.Name.Tool {
		a.field(d.Title, inTitle, w.title, w.vectorName/2, 0)
	}
	a.field(d.Name.Server, inServer, w.server, w.vectorServer, 0)
	a.field(d.ServerTitle, inServerText, w.serverText, 0, typicalServerText)
	a.field(firstSentence(d.ServerDescription), inServerText, w.serverText, 0, typicalServerText)
	a.field(firstSentence(d.Description), inDescription, w.sentence, w.vectorDescription, typicalSentence)
	a.field(d.Description, inDescription, w.description, 0, typicalDescription)
	a.field(beginning(d.Description), 0, 0, w.vectorDescription/2, 0)
	for _, t := range d.Tags {
		a.field(t, inTag, w.tags, 0, 0)
	}
	names, texts := parameters(d.InputSchema)
	a.field(names, inParameter, w.parameterName, w.vectorParameter, typicalParameterNames)
	a.field(texts, inParameter, w.parameterText, w.vectorParameter/3, typicalParameterTexts)

	a.entries = a.entries[:0]
	for _, term := range a.seen {
		c := &a.counts[term]
		const minShare = 0.02 // smaller weights are not worth the memory
		if share := c.tf / (c.tf + w.saturation); share >= minShare {
			a.entries = append(a.entries, entry{term: term, impact: uint8(math.Round(float64(share * 255))), fields: c.fields})
		}
		*c = count{}
	}
	a.seen = a.seen[:0]

	clear(a.sum)
	for _, i := range a.used {
		a.table.addTo(a.sum, int(a.words[i].row), a.meaning[i])
		a.meaning[i] = 0
	}
	a.used = a.used[:0]
	return a.entries, a.sum
}

// beginning returns the maxMeaningBytes part of a description, in whole words.
func beginning(s string) string {
	if len(s) <= maxMeaningBytes {
		return s
	}
	s = s[:maxMeaningBytes]
	if i := strings.LastIndexByte(s, ' '); i > 0 {
		return s[:i]
	}
	return strings.ToValidUTF8(s, "")
}

// changes reports whether a tool changes something, according to its hint or
// the words of its name.
func (a *analyser) changes(d *Doc) bool {
	if d.ReadOnly != nil {
		return !*d.ReadOnly
	}
	a.tok.reset()
	a.tok.add(d.Name.Tool, true)
	for _, t := range a.tok.tokens {
		if a.lx.changes[a.terms.terms[a.words[a.word(t)].term]] {
			return true
		}
	}
	return false
}

// full reports whether the cache exceeds maxKnownWords.
func (a *analyser) full() bool { return len(a.words) > maxKnownWords }

// firstSentence returns the first sentence or paragraph of a text.
func firstSentence(s string) string {
	const minLength, maxLength = 8, 300
	s = strings.TrimLeft(s, " \t\r\n#*-")
	for i := range min(len(s), maxLength) {
		if i <= minLength {
			continue
		}
		next := byte('\n')
		if i+1 < len(s) {
			next = s[i+1]
		}
		switch s[i] {
		case '.', '!', '?', ';', ':':
			if next == ' ' || next == '\n' {
				return s[:i]
			}
		case '\n':
			if next == '\n' {
				return s[:i]
			}
		}
	}
	return s[:min(len(s), maxLength)]
}
