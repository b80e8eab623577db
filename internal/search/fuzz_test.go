package search

import (
	"strings"
	"testing"

	"junctor/internal/tool"
)

// FuzzSearch checks for arbitrary tools and queries that Search does not panic,
// hits are in order with a relevance in range, and the exact name is first.
func FuzzSearch(f *testing.F) {
	f.Add("create_issue", "Open an issue. Needs a title.", `{"properties":{"title":{"description":"what it is about"}}}`, "file a bug")
	f.Add("s:x", "", `{"properties":{"a":1}}`, "s:s:x")
	f.Add("!!", "…", `[`, "!!")
	f.Add("天气", "查询天气", `{}`, "今天的天气")
	f.Add("A b", "\xff", `{"properties":{"":{"enum":["x",null]}}}`, "a_B")
	f.Add("get and send", "Get a thing", `{}`, "get a thing now; send the email")
	f.Add("wetter", "19 + 23", `{}`, "wie ist das wetter 19 + 23 https://x.y/z")
	ix := New() // shared by all rounds, which replace the tools of "s"
	ix.Put("mail", docs("mail", "send_email: Send an email.", "get: Get a thing."))
	f.Fuzz(func(t *testing.T, name, description, schema, query string) {
		ix.Put("s", []Doc{{Name: tool.Name{Server: "s", Tool: name}, Description: description, InputSchema: []byte(schema)}})
		for _, text := range []string{query, name, "s:" + name} {
			hits, err := ix.Search(Query{Text: text, Explain: true})
			if err != nil {
				if strings.TrimSpace(text) != "" {
					t.Fatalf("Search(%q): %v", text, err)
				}
				continue
			}
			inOrder := ix.lx.clauses(text) == nil // otherwise the hits of the clauses alternate
			for i, h := range hits {
				if !(h.Relevance >= 0 && h.Relevance <= 1) || i > 0 && inOrder && h.Relevance > hits[i-1].Relevance {
					t.Fatalf("hit %d of %q has relevance %v", i, text, h.Relevance)
				}
			}
			if text != query && strings.TrimSpace(name) != "" && (len(hits) == 0 || hits[0].Name.Tool != name && strings.TrimSpace(hits[0].Name.Tool) != strings.TrimSpace(name)) {
				t.Fatalf("the name %q finds %v", text, hits)
			}
		}
	})
}
