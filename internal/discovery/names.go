package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"junctor/internal/catalog"
)

// maxName is the length of a name that every client and model takes.
const maxName = 64

// publicName is the name under which a tool or prompt of a server is offered
// directly: server__name where that is legal and can be no other's, else cut
// and marked with a hash of both. It depends on the two alone, so that it
// stays the same whatever else comes and goes.
func publicName(server, name string) string {
	plain := server + "__" + name
	// Without these a second pair could have the same plain name.
	unambiguous := !strings.Contains(server, "__") && !strings.HasSuffix(server, "_")
	if unambiguous && name != "" && len(plain) <= maxName && legal(plain) {
		return plain
	}
	return markedName(server, name, 8)
}

// markedName is a legal name with digits of the hash at its end.
func markedName(server, name string, digits int) string {
	sum := sha256.Sum256([]byte(server + ":" + name))
	mark := "_" + hex.EncodeToString(sum[:])[:digits]
	var b strings.Builder
	for _, r := range server + "__" + name {
		if b.Len() >= maxName-len(mark) {
			break
		}
		if r < 0x80 && legalByte(byte(r)) {
			b.WriteByte(byte(r))
		} else {
			b.WriteByte('_')
		}
	}
	return b.String() + mark
}

func legal(s string) bool {
	for i := range len(s) {
		if !legalByte(s[i]) {
			return false
		}
	}
	return true
}

func legalByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// table maps public names back to what they stand for.
type table[T any] struct {
	byName map[string]T
	names  []string // sorted
}

func newTable[T any](size int) *table[T] {
	return &table[T]{byName: make(map[string]T, size), names: make([]string, 0, size)}
}

// add registers an item under its public name. A name that is taken, which
// takes a collision of hashes, grows until it is free.
func (t *table[T]) add(server, name string, item T) {
	public := publicName(server, name)
	for digits := 16; ; digits += 8 {
		if _, taken := t.byName[public]; !taken {
			break
		}
		if digits > 48 {
			return // the same server and name twice
		}
		public = markedName(server, name, digits)
	}
	t.byName[public] = item
	t.names = append(t.names, public)
}

func (t *table[T]) sort() { slices.Sort(t.names) }

// after returns the names behind the cursor, at most n.
func (t *table[T]) after(cursor string, n int) (names []string, more bool) {
	i, found := slices.BinarySearch(t.names, cursor)
	if found {
		i++
	}
	rest := t.names[i:]
	return rest[:min(n, len(rest))], len(rest) > n
}

// nearest returns up to n names that look most like name.
func (t *table[T]) nearest(name string, n int) []string {
	return catalog.Nearest(name, t.names, n)
}

// toolTable makes the public names of all tools of a snapshot, disabled ones
// too: a name does not change when another tool is switched off.
func toolTable(s *catalog.Snapshot) *table[*catalog.Entry] {
	t := newTable[*catalog.Entry](s.Len())
	for _, server := range s.Servers() {
		for _, e := range server.Tools {
			t.add(server.Name, e.Name.Tool, e)
		}
	}
	t.sort()
	return t
}
