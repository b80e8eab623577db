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

//go:embed phrases.txt
var phraseFile string

// lexicon is what the ranking knows of English before it sees a tool.
type lexicon struct {
	stop     map[string]bool     // words that say nothing, as they are written
	synonyms map[string][]string // stem to the stems that may stand for it
	asks     map[string]bool     // words at the start of a query that asks, as they are written
	changes  map[string]bool     // stems of verbs that change something
	verbs    map[string]bool     // other words that may start a request, as they are written
	sequels  map[string]bool     // words between two requests, as they are written
	phrases  map[string][]phrase // by the first word, the longest first
}

// phrase is a turn of phrase, and the words by which tools say the same.
type phrase struct {
	words, means []string // as they are written
}

// loadLexicon reads the lists. A line "a b c" of the thesaurus says that
// each may stand for the others; "a > b c" that b and c may stand for a, and
// not the other way round. A line "a b > c d" of the phrases says that c or d
// is meant where a and b stand side by side.
func loadLexicon(thesaurus, stop, verbs, phrases string) *lexicon {
	lx := &lexicon{
		stop:     make(map[string]bool),
		synonyms: make(map[string][]string),
		asks:     make(map[string]bool),
		changes:  make(map[string]bool),
		verbs:    make(map[string]bool),
		sequels:  make(map[string]bool),
		phrases:  make(map[string][]phrase),
	}
	add(lx.stop, strings.Fields(stop))
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
			add(lx.asks, strings.Fields(list))
		case "change":
			add(lx.changes, stems(list))
		case "verb":
			add(lx.verbs, strings.Fields(list))
		case "sequel":
			add(lx.sequels, strings.Fields(list))
		}
	}
	for line := range strings.Lines(phrases) {
		line, _, _ = strings.Cut(line, "#")
		if from, to, ok := strings.Cut(line, ">"); ok {
			p := phrase{words: strings.Fields(from), means: strings.Fields(to)}
			lx.phrases[p.words[0]] = append(lx.phrases[p.words[0]], p)
		}
	}
	for _, list := range lx.phrases {
		slices.SortStableFunc(list, func(a, b phrase) int { return len(b.words) - len(a.words) })
	}
	return lx
}

func add(set map[string]bool, words []string) {
	for _, w := range words {
		set[w] = true
	}
}

// phraseAt returns the longest turn of phrase with which the tokens begin.
func (lx *lexicon) phraseAt(tokens []string) (phrase, bool) {
	for _, p := range lx.phrases[tokens[0]] {
		if len(p.words) <= len(tokens) && slices.Equal(p.words, tokens[:len(p.words)]) {
			return p, true
		}
	}
	return phrase{}, false
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
