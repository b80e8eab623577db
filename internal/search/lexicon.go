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

// lexicon is what the ranking knows of English before it sees a tool.
type lexicon struct {
	stop     map[string]bool     // words that say nothing, as they are written
	synonyms map[string][]string // stem to the stems that may stand for it
}

// loadLexicon reads the two lists. A line "a b c" of the thesaurus says that
// each may stand for the others; "a > b c" that b and c may stand for a, and
// not the other way round.
func loadLexicon(thesaurus, stop string) *lexicon {
	lx := &lexicon{stop: make(map[string]bool), synonyms: make(map[string][]string)}
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
	return lx
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
