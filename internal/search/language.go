package search

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
)

//go:embed languages.txt
var languageFile string

// languages turn what is asked in another language into the words of tools,
// which are nearly all written in English. They are a dictionary of what
// tools do, no translator.
type languages struct {
	spaced   []language // that part words with spaces, in the order of their names
	unspaced []foreign
}

// language is one that parts words with spaces.
type language struct {
	little map[string]bool     // the words by which it is known, and that say nothing
	words  map[string][]string // a word to the English ones
}

// foreign is a word of a language that does not part them.
type foreign struct{ word, english string }

func loadLanguages(file string) *languages {
	all := &languages{}
	named := make(map[string]language)
	for line := range strings.Lines(file) {
		line, _, _ = strings.Cut(line, "#")
		head, entries, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		name, little := strings.CutSuffix(head, " little")
		if _, ok := named[name]; !ok && name != "unspaced" {
			named[name] = language{make(map[string]bool), make(map[string][]string)}
		}
		for _, entry := range strings.Fields(entries) {
			if little {
				named[name].little[entry] = true
				continue
			}
			english, list, _ := strings.Cut(entry, "=")
			for _, word := range strings.Split(list, ",") {
				if name == "unspaced" {
					all.unspaced = append(all.unspaced, foreign{word, english})
				} else {
					named[name].words[word] = append(named[name].words[word], english)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		all.spaced = append(all.spaced, named[name])
	}
	return all
}

// of returns the language of a query, or nil when it is English or not known.
// A language shows in its little words, of which English has none as often,
// or in two words for which English has no use. Known tells the words that
// tools use.
func (all *languages) of(tokens []string, english map[string]bool, known func(string) bool) *language {
	ours := 0
	for _, t := range tokens {
		if english[t] {
			ours++
		}
	}
	var best *language
	most := 0
	for i := range all.spaced {
		l := &all.spaced[i]
		little, words, strange := 0, 0, 0
		for _, t := range tokens {
			switch {
			case l.words[t] != nil:
				words++
				if !known(t) {
					strange++
				}
			case l.little[t] && !english[t]:
				little++
			}
		}
		shows := little > ours/2 && words > 0 || strange > 1 && ours <= 1
		if shows && 2*little+words > most {
			best, most = l, 2*little+words
		}
	}
	return best
}

// translate puts the English words in the place of those that the language
// has, and leaves its little words out. What tools use themselves stays, for
// they may be written in that language.
func (l *language) translate(to, tokens []string, known func(string) bool) []string {
	for _, t := range tokens {
		english := l.words[t]
		if !l.little[t] && (english == nil || known(t)) {
			to = append(to, t)
		}
		to = append(to, english...)
	}
	return to
}

// within adds the English words for those that a text without spaces has.
func (all *languages) within(text string, to []string) []string {
	for _, f := range all.unspaced {
		if strings.Contains(text, f.word) && !slices.Contains(to, f.english) {
			to = append(to, f.english)
		}
	}
	return to
}
