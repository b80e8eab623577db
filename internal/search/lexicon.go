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

// lexicon is the built-in knowledge of English words.
type lexicon struct {
	stop     map[string]bool     // stop words in their written form
	synonyms map[string][]string // stem to the stems of its synonyms
	asks     map[string]bool     // words that begin a question, in their written form
	changes  map[string]bool     // stems of verbs that change something
	verbs    map[string]bool     // other words that may begin a request, in their written form
	sequels  map[string]bool     // words between two requests, in their written form
	phrases  map[string][]phrase // by first word, longest first
}

// phrase is an idiom and the words that tools use for it.
type phrase struct {
	words, means []string // in their written form
}

// loadLexicon parses the word lists. A line "a b c" of the thesaurus makes each
// a synonym of the others; "a > b c" makes b and c synonyms of a, but not the
// reverse. A line "a b > c d" of the phrases means that c or d is searched for
// where a and b are adjacent.
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

// phraseAt returns the longest phrase that is a prefix of tokens.
func (lx *lexicon) phraseAt(tokens []string) (phrase, bool) {
	for _, p := range lx.phrases[tokens[0]] {
		if len(p.words) <= len(tokens) && slices.Equal(p.words, tokens[:len(p.words)]) {
			return p, true
		}
	}
	return phrase{}, false
}

// onlyAsks reports whether a query is a question and contains no verb that
// changes something. first is its first word, terms are the stems of its
// significant words. If in doubt it returns false.
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
