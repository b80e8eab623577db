package search

import (
	"strings"

	"junctor/internal/tool"
)

// Limits and weights of queries with several clauses.
const (
	maxClauses     = 3
	minClauseWords = 2           // a clause with fewer words carries no information by itself
	clauseShare    = float32(.9) // weight of a hit of a clause relative to one of the whole query
	repeatedClause = float32(.7) // factor for each further hit of the same clause
)

// clauses splits a query that asks for several things into its clauses: at a
// semicolon, at words such as "then", and at an "and" before a verb. It returns
// nil for a query that asks for one thing.
func (lx *lexicon) clauses(text string) []string {
	if len(text) > maxQueryBytes {
		return nil
	}
	var list []string
	start, words := 0, 0 // of the current clause: its first byte, and its number of significant words
	cut := func(end, next int) {
		if words >= minClauseWords {
			list = append(list, text[start:end])
			start, words = next, 0
		}
	}
	joint := -1 // position of an "and" if it was the last word
	for at := 0; at < len(text); {
		from := at
		for at < len(text) && isLetter(text[at]) {
			at++
		}
		if at == from {
			if text[at] == ';' {
				cut(at, at+1)
			}
			at++
			continue
		}
		word := strings.ToLower(text[from:at])
		switch {
		case word == "and":
			joint = from
			continue
		case lx.sequels[word]:
			if joint < 0 {
				joint = from
			}
			cut(joint, at)
			joint = -1
			continue
		case joint >= 0 && lx.startsRequest(word):
			cut(joint, from)
		}
		joint = -1
		if !lx.stop[word] {
			words++
		}
	}
	if len(list) == 0 || words < minClauseWords || len(list) == maxClauses {
		return nil
	}
	return append(list, text[start:])
}

// isLetter treats bytes of other scripts as letters, so that no word is split.
func isLetter(c byte) bool { return c >= 0x80 || isAlnum(c) && !isDigit(c) }

func (lx *lexicon) startsRequest(word string) bool {
	return lx.verbs[word] || lx.asks[word] || lx.changes[stemOf(word)]
}

// interleave merges the hits of a whole query and of its clauses, each in the
// order of its list. Each hit taken from a list lowers the weight of that
// list's next one, so that hits for the second clause appear near the top even
// if many tools match the first.
func interleave(lists [][]Hit, limit int) []Hit {
	share := make([]float32, len(lists))
	for i := range share {
		share[i] = clauseShare
	}
	share[0] = 1 // the whole query
	seen := make(map[tool.Name]bool)
	var hits []Hit
	for len(hits) < limit {
		best, bestScore := -1, float32(0)
		for i := range lists {
			for len(lists[i]) > 0 && seen[lists[i][0].Name] {
				lists[i] = lists[i][1:]
			}
			if len(lists[i]) > 0 && (best < 0 || lists[i][0].score*share[i] > bestScore) {
				best, bestScore = i, lists[i][0].score*share[i]
			}
		}
		if best < 0 {
			break
		}
		seen[lists[best][0].Name] = true
		hits = append(hits, lists[best][0])
		share[best] *= repeatedClause
	}
	return hits
}
