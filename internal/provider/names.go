package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// MaxName is the length that a declared name may have. It and the characters
// of [LegalName] are what all providers, and all clients known to us, have in
// common, so that a conversation can move from one to another.
const MaxName = 63

// LegalName returns the name under which a tool is declared: server__tool
// where that is legal and can be no other tool's (no other "__" in it, and no
// end that looks like a hash), else the beginning of it, an
// underscore, and 8 hexadecimal digits of a hash of server and tool.
//
// It depends on nothing but its argument, so a name in an old conversation
// means the same tool after a restart, whatever other tools have come or gone.
// It is never parsed: [Names] leads back.
func LegalName(n tool.Name) string { return legalName(n, 4) }

// LongName is a name for a tool whose LegalName is another tool's too.
func LongName(n tool.Name) string { return legalName(n, 16) }

func legalName(n tool.Name, hashBytes int) string {
	joined := n.Server + "__" + n.Tool
	legal := identifier(joined, true)
	// The "__" between server and tool must be the only one, and the end must
	// not look like a hash: then no other pair has this name, plain or hashed.
	unambiguous := strings.Index(joined, "__") == strings.LastIndex(joined, "__") && !endsInHash(joined)
	if unambiguous && legal == joined && len(joined) <= MaxName && n.Tool != "" && hashBytes == 4 {
		return joined
	}
	return withHash(legal, n.String(), MaxName, hashBytes)
}

// endsInHash reports whether a name ends like one that withHash made.
func endsInHash(name string) bool {
	i := strings.LastIndexByte(name, '_')
	return len(name)-i-1 == 8 && strings.Trim(name[i+1:], "0123456789abcdef") == ""
}

// withHash cuts a legal name and makes it unique again.
func withHash(legal, source string, limit, hashBytes int) string {
	sum := sha256.Sum256([]byte(source))
	suffix := "_" + hex.EncodeToString(sum[:hashBytes])
	if keep := limit - len(suffix); len(legal) > keep {
		legal = legal[:keep]
	}
	return legal + suffix
}

// identifier replaces what is not a letter, a digit, an underscore or (where
// allowed) a dash, and puts an underscore before what may not begin a name.
func identifier(s string, dash bool) string {
	var b strings.Builder
	for _, r := range s {
		if letter(r) || r == '_' || '0' <= r && r <= '9' || dash && r == '-' {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	id := b.String()
	if id == "" || !letter(rune(id[0])) && id[0] != '_' {
		id = "_" + id
	}
	return id
}

func letter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// Names is the table between tools and their declared names.
type Names struct {
	legal map[tool.Name]string
	tools map[string]tool.Name
}

// newNames makes the table of a set of tools. Should two tools have the same
// hash, which does not happen by chance, both get a longer one: neither can take over the
// other's name.
func newNames(tools []tool.Name) *Names {
	n := &Names{legal: make(map[tool.Name]string, len(tools)), tools: make(map[string]tool.Name, len(tools))}
	claims := make(map[string][]tool.Name, len(tools))
	for _, t := range tools {
		name := LegalName(t)
		if !slices.Contains(claims[name], t) {
			claims[name] = append(claims[name], t)
		}
	}
	for name, claimants := range claims {
		for _, t := range claimants {
			if len(claimants) > 1 {
				name = LongName(t)
			}
			n.legal[t] = name
			n.tools[name] = t
		}
	}
	return n
}

// Legal returns the declared name of a tool of the table.
func (n *Names) Legal(t tool.Name) (string, bool) {
	name, ok := n.legal[t]
	return name, ok
}

// Tool returns the tool that was declared under a name.
func (n *Names) Tool(name string) (tool.Name, bool) {
	t, ok := n.tools[name]
	return t, ok
}
