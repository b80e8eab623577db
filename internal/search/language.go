package search

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
)

//go:embed languages.txt
var languageFile string

// languages translate words of queries in other languages into the words of
// tools, which are nearly always in English. They are dictionaries of what
// tools do, not general translators.
type languages struct {
	spaced   []language // languages with spaces between words, ordered by name
	unspaced []foreign
}

// language is a language with spaces between words.
type language struct {
	little map[string]bool     // function words that identify the language and carry no other information
	words  map[string][]string // word to its English translations
}

// foreign is a word of a language without spaces between words.
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

// of returns the language of a query, or nil if it is English or unknown. A
// language is recognized by its function words, or by two words that do not
// occur in English. known reports whether tools use a word.
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

// translate replaces the words of the language by English ones and drops its
// function words. Words that tools use are kept, because the tools may be
// written in that language.
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

// within appends the English translations of the words in a text without
// spaces.
func (all *languages) within(text string, to []string) []string {
	for _, f := range all.unspaced {
		if strings.Contains(text, f.word) && !slices.Contains(to, f.english) {
			to = append(to, f.english)
		}
	}
	return to
}
