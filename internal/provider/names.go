package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// MaxName is the maximum length of a declared name. It and the characters of
// [LegalName] are accepted by all providers and by all clients that we know, so
// that a conversation can move from one to another.
const MaxName = 63

// LegalName returns the name under which a tool is declared. This is
// server__tool if that is legal and cannot be another tool's name: it contains
// no other "__" and does not end like a hash. Otherwise it is the beginning of
// that, made legal, with an underscore and 8 hexadecimal digits of a hash of
// server and tool.
//
// The name depends only on the argument, so a name in an old conversation means
// the same tool after a restart, whatever tools were added or removed. It is
// never parsed; [Names] maps it back.
func LegalName(n tool.Name) string { return legalName(n, 4) }

// LongName returns the name of a tool whose LegalName is also that of another
// tool.
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

// withHash truncates a legal name and appends a hash of source, which makes the
// name unique.
func withHash(legal, source string, limit, hashBytes int) string {
	sum := sha256.Sum256([]byte(source))
	suffix := "_" + hex.EncodeToString(sum[:hashBytes])
	if keep := limit - len(suffix); len(legal) > keep {
		legal = legal[:keep]
	}
	return legal + suffix
}

// identifier replaces all characters except letters, digits, underscores and,
// if dash is true, dashes with underscores. It prepends an underscore if the
// result does not begin with a letter or an underscore.
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

// Names maps tools to declared names and back.
type Names struct {
	legal map[tool.Name]string
	tools map[string]tool.Name
}

// newNames returns the table for a set of tools. If two tools have the same
// name, which takes a deliberate hash collision, both get a longer one, so that
// neither can take over the other's name.
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
