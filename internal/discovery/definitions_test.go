package discovery

import (
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
)

// The direct view lists the complete definition of a tool, with only the name
// changed: title, icons, annotations, outputSchema, _meta and unknown members
// are kept. In the stateless era lists have a cache TTL. In both eras lists
// end even if the server's pages do not.
func TestDefinitionsInTheDirectView(t *testing.T) {
	t.Parallel()
	endless := newTestServer(wireTool)
	endless.resources = make([]string, 5000)
	for i := range endless.resources {
		endless.resources[i] = "note:" + strings.Repeat("x", 1+i%7) + string(rune('a'+i%26))
	}
	f := newFixture(t, map[string]*testServer{"paint": endless})
	want := strings.Replace(wireTool, `"name":"echo"`, `"name":"paint__echo"`, 1)
	for _, version := range []string{mcp.Version20250618, mcp.Version20251125, mcp.Version20260728} {
		c := f.client(version, View{Mode: DirectMode})
		list := do(t, c, "tools/list", `{}`)
		if got := string(rawjson.Field(list, "tools")); got != "["+want+"]" {
			t.Errorf("%s: tools/list has\n%s, want\n%s", version, got, want)
		}
		resources := do(t, c, "resources/list", `{}`)
		n := 0
		for range rawjson.Elements(rawjson.Field(resources, "resources")) {
			n++
		}
		if n != maxPages {
			t.Errorf("%s: %d resources of a server with one on each page, want those of %d pages", version, n, maxPages)
		}
		for _, result := range [][]byte{list, resources} {
			if string(rawjson.Field(result, "ttlMs")) != "60000" || rawjson.FieldString(result, "cacheScope") != "private" {
				t.Errorf("%s: %.200s has no lifetime", version, result)
			}
		}
		read := do(t, c, "resources/read", `{"uri":"note:one"}`)
		if version == mcp.Version20260728 && string(rawjson.Field(read, "ttlMs")) != "0" {
			t.Errorf("%s: resources/read = %s", version, read)
		}
	}
}
