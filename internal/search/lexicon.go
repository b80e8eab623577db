package search

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed thesaurus.txt
var thesaurusFile string

//go:embed stopwords.txt
var stopFile string

//go:embed verbs.txt
var verbFile string

// lexicon is what the ranking knows of English before it sees a tool.
type lexicon struct {
	stop     map[string]bool     // words that say nothing, as they are written
	synonyms map[string][]string // stem to the stems that may stand for it
	asks     map[string]bool     // words at the start of a query that asks, as they are written
	changes  map[string]bool     // stems of verbs that change something
}

// loadLexicon reads the lists. A line "a b c" of the thesaurus says that
// each may stand for the others; "a > b c" that b and c may stand for a, and
// not the other way round.
func loadLexicon(thesaurus, stop, verbs string) *lexicon {
	lx := &lexicon{
		stop:     make(map[string]bool),
		synonyms: make(map[string][]string),
		asks:     make(map[string]bool),
		changes:  make(map[string]bool),
	}
	for _, w := range strings.Fields(stop) {
		lx.stop[w] = true
	}
	for line := range strings.Lines(thesaurus) {
		line, _, _ = strings.Cut(line, "#")
		from, to, directed := strings.Cut(line, ">")
		group := stems(from)
		others := group
		if directed {
			others = stems(to)
		}
		for _, a := range group {
			for _, b := range others {
				if a != b && !slices.Contains(lx.synonyms[a], b) {
					lx.synonyms[a] = append(lx.synonyms[a], b)
				}
			}
		}
	}
	for line := range strings.Lines(verbs) {
		kind, list, _ := strings.Cut(line, ":")
		switch kind {
		case "ask":
			for _, w := range strings.Fields(list) {
				lx.asks[w] = true
			}
		case "change":
			for _, s := range stems(list) {
				lx.changes[s] = true
			}
		}
	}
	return lx
}

// onlyAsks reports whether a query asks for something and names nothing that
// could change it. First is its first word, terms are the stems of all that
// count. In doubt it does not only ask.
func (lx *lexicon) onlyAsks(first string, terms []string) bool {
	if !lx.asks[first] {
		return false
	}
	for _, t := range terms {
		if lx.changes[t] || slices.ContainsFunc(lx.synonyms[t], func(s string) bool { return lx.changes[s] }) {
			return false
		}
	}
	return true
}

func stems(words string) []string {
	list := strings.Fields(words)
	for i, w := range list {
		list[i] = stemOf(w)
	}
	return list
}

// stemOf returns the stem of a lower-case word.
func stemOf(w string) string {
	var buf [maxTokenBytes + 8]byte
	if len(w) > maxTokenBytes {
		return w
	}
	return string(stem(append(buf[:0], w...)))
}
