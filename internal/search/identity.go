package search

import (
	"hash/fnv"
	"strings"
	"unicode"

	"junctor/internal/tool"
)

// The ways in which a text can name a tool.
const (
	noNameMatch = iota
	similarName // equal except for case, spaces and punctuation
	exactName   // equal, alone or after the server's name
)

// nameMatcher finds the tools that a query names.
type nameMatcher struct {
	text   string
	hashes [3]uint32 // of the text, and of the part after a colon or two underscores
}

func newNameMatcher(text string) nameMatcher {
	n := nameMatcher{text: strings.TrimSpace(text)}
	for i, sep := range [...]string{"", ":", "__"} {
		rest := n.text
		if sep != "" {
			if _, behind, ok := strings.Cut(n.text, sep); ok {
				rest = behind
			}
		}
		n.hashes[i] = nameHash(rest)
	}
	return n
}

// of returns how the text names tool t of names. hash is the hash of its name.
func (n *nameMatcher) of(names []tool.Name, t int, hash uint32) uint8 {
	if hash != n.hashes[0] && hash != n.hashes[1] && hash != n.hashes[2] {
		return noNameMatch
	}
	return n.exactly(names[t])
}

// exactly compares the whole text, and the part after the server's name, with
// name.
func (n *nameMatcher) exactly(name tool.Name) uint8 {
	how := uint8(noNameMatch)
	for _, prefix := range [...]string{"", name.Server + ":", name.Server + "__"} {
		text, ok := strings.CutPrefix(n.text, prefix)
		switch {
		case !ok:
		case text == strings.TrimSpace(name.Tool):
			return exactName
		case folded(text) == folded(name.Tool):
			how = similarName
		}
	}
	return how
}

// nameHash returns the hash of the folded text.
func nameHash(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(folded(text)))
	return h.Sum32()
}

// folded returns the letters and digits of a text in lower case, so that
// createIssue, create_issue and "Create issue" are equal. It returns a text
// without any unchanged.
func folded(text string) string {
	f := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
	if f == "" {
		return strings.TrimSpace(text)
	}
	return f
}
