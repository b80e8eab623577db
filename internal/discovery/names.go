package discovery

import (
	"slices"

	"junctor/internal/catalog"
	"junctor/internal/provider"
	"junctor/internal/tool"
)

// publicName returns the name of a tool or prompt in the direct view. Package
// provider uses the same names, so that a conversation can move between APIs.
func publicName(server, name string) string {
	return provider.LegalName(tool.Name{Server: server, Tool: name})
}

// table maps public names to items.
type table[T any] struct {
	byName map[string]T
	names  []string // sorted
}

func newTable[T any](size int) *table[T] {
	return &table[T]{byName: make(map[string]T, size), names: make([]string, 0, size)}
}

// add registers an item under its public name, or under a longer one if the
// names collide. Duplicates of a server and name are dropped.
func (t *table[T]) add(server, name string, item T) {
	public := publicName(server, name)
	if _, taken := t.byName[public]; taken {
		public = provider.LongName(tool.Name{Server: server, Tool: name})
		if _, taken := t.byName[public]; taken {
			return
		}
	}
	t.byName[public] = item
	t.names = append(t.names, public)
}

func (t *table[T]) sort() { slices.Sort(t.names) }

// after returns the names after the cursor.
func (t *table[T]) after(cursor string) []string {
	i, found := slices.BinarySearch(t.names, cursor)
	if found {
		i++
	}
	return t.names[i:]
}

// toolTable returns the public names of all tools of a snapshot, including
// disabled ones, so that a name does not change when another tool is disabled.
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
