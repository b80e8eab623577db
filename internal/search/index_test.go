package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"junctor/internal/tool"
)

// docs returns tools of one server, given as lines "name: description".
func docs(server string, lines ...string) []Doc {
	var list []Doc
	for _, l := range lines {
		name, description, _ := strings.Cut(l, ": ")
		list = append(list, Doc{Name: tool.Name{Server: server, Tool: name}, Description: description})
	}
	return list
}

// find returns the names of the hits of a query, as server:tool.
func find(t *testing.T, ix *Index, q Query) []string {
	t.Helper()
	hits, err := ix.Search(q)
	if err != nil {
		t.Fatalf("Search(%q): %v", q.Text, err)
	}
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = h.Name.String()
	}
	return names
}

func TestPutReplacesAndRemoveRemoves(t *testing.T) {
	ix := New()
	ix.Put("mail", docs("mail", "send: Send an email.", "read: Read an email."))
	ix.Put("files", docs("files", "read_file: Read a file."))
	if n := ix.Len(); n != 3 {
		t.Fatalf("Len = %d, want 3", n)
	}
	if got := find(t, ix, Query{Text: "send an email"}); len(got) == 0 || got[0] != "mail:send" {
		t.Errorf("found %v, want mail:send first", got)
	}
	ix.Put("mail", docs("mail", "search: Search the mailbox."))
	if got := find(t, ix, Query{Text: "send an email"}); slices.Contains(got, "mail:send") {
		t.Errorf("a tool is found that was replaced: %v", got)
	}
	if n := ix.Len(); n != 2 {
		t.Errorf("Len = %d, want 2", n)
	}
	ix.Remove("mail")
	ix.Remove("mail")
	ix.Remove("never there")
	if got := find(t, ix, Query{Text: "search the mailbox"}); slices.Contains(got, "mail:search") {
		t.Errorf("a tool is found that was removed: %v", got)
	}
	ix.Put("files", nil)
	if n := ix.Len(); n != 0 {
		t.Errorf("Len = %d, want 0", n)
	}
	if got := find(t, ix, Query{Text: "anything"}); len(got) != 0 {
		t.Errorf("found %v in an empty index", got)
	}
}

func TestDuplicateToolsCountOnce(t *testing.T) {
	ix := New()
	ix.Put("s", docs("s", "a: one", "b: two", "a: three", "c: four", "c: five"))
	if n := ix.Len(); n != 3 {
		t.Errorf("Len = %d, want 3", n)
	}
	if got := find(t, ix, Query{Text: "three"}); slices.Contains(got, "s:a") {
		t.Error("the later of two docs with one name was taken")
	}
}

// TestInsertionOrderDoesNotMatter checks that results do not depend on the
// order in which upstreams are added and removed.
func TestInsertionOrderDoesNotMatter(t *testing.T) {
	sets := map[string][]Doc{}
	for i := range 20 {
		s := fmt.Sprintf("server%02d", i)
		sets[s] = docs(s, "list_items: List the items of a store.", "delete_items: Deletes items.", fmt.Sprintf("tool%d: Does thing %d with reports.", i, i))
	}
	build := func(servers []string) *Index {
		ix := New()
		ix.Put("gone", docs("gone", "other: Something that was here before."))
		for _, s := range servers {
			ix.Put(s, sets[s])
			ix.Len() // assemble in between
		}
		ix.Remove("gone")
		return ix
	}
	servers := slices.Sorted(maps.Keys(sets))
	a := build(servers)
	slices.Reverse(servers)
	b := build(servers)
	for _, text := range []string{"list items", "delete", "reprot", "thing 7", "store"} {
		x, y := find(t, a, Query{Text: text, Limit: 100}), find(t, b, Query{Text: text, Limit: 100})
		if !slices.Equal(x, y) {
			t.Errorf("%q: %v in one order, %v in another", text, x, y)
		}
	}
}

// TestRemovedTermsAreForgotten checks that a snapshot in use does not change,
// and that terms of removed tools are eventually deleted.
func TestRemovedTermsAreForgotten(t *testing.T) {
	ix := New()
	ix.Put("stay", docs("stay", "weather_forecast: Forecast for a city."))
	before := ix.current()
	for i := range 60 {
		var list []string
		for j := range 100 {
			list = append(list, fmt.Sprintf("tool%d: word%dx%dq other%dy%dz", j, i, j, i, j))
		}
		ix.Put("churn", docs("churn", list...))
		if got := find(t, ix, Query{Text: "forecast", Limit: 1}); len(got) != 1 || got[0] != "stay:weather_forecast" {
			t.Fatalf("round %d: found %v", i, got)
		}
	}
	if n := len(ix.current().terms.terms); n > 1<<13 {
		t.Errorf("%d terms are kept of 101 tools", n)
	}
	if len(before.names) != 1 || before.terms.terms[before.entries[0].term] == "" {
		t.Error("an old snapshot changed")
	}
	if got := find(t, ix, Query{Text: "word59x7q", Limit: 1}); len(got) != 1 || got[0] != "churn:tool7" {
		t.Errorf("found %v after churn, want churn:tool7", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	ix := New()
	ix.Put("stay", docs("stay", "weather_forecast: Forecast for a city."))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			server := fmt.Sprint("server", i)
			for j := range 50 {
				ix.Put(server, docs(server, fmt.Sprintf("tool%d: Works on subject%d and forecast", j, j)))
				if j%7 == 0 {
					ix.Remove(server)
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				hits, err := ix.Search(Query{Text: "weather forecast", Explain: true})
				if err != nil || len(hits) == 0 || hits[0].Name.Server != "stay" {
					t.Errorf("hits %v, error %v", hits, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestParameters(t *testing.T) {
	for name, tt := range map[string]struct{ schema, names, texts string }{
		"properties": {
			schema: `{"type":"object","properties":{"to":{"description":"who gets it"},"body":{"description":"the text"}}}`,
			names:  "body to", texts: "the text who gets it",
		},
		"nested and arrays": {
			schema: `{"properties":{"rows":{"type":"array","items":{"properties":{"cell":{"description":"A1"}}}}}}`,
			names:  "rows cell", texts: "A1",
		},
		"choices":     {schema: `{"properties":{"mode":{"enum":["fast","slow",3,null]}}}`, names: "mode", texts: "fast slow"},
		"wrong types": {schema: `{"properties":{"a":{"description":7},"b":true,"c":{"description":"kept"}},"items":[1]}`, names: "a b c", texts: "kept"},
		"no object":   {schema: `[]`},
		"broken":      {schema: `{"properties":{`},
		"none":        {schema: ``},
		"too large":   {schema: `{"properties":{"x":{"description":"` + strings.Repeat("x", maxSchemaBytes) + `"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			names, texts := parameters([]byte(tt.schema))
			if got := strings.Join(strings.Fields(names), " "); got != tt.names {
				t.Errorf("names = %q, want %q", got, tt.names)
			}
			if got := strings.Join(strings.Fields(texts), " "); got != tt.texts {
				t.Errorf("texts = %q, want %q", got, tt.texts)
			}
		})
	}
	deep := strings.Repeat(`{"properties":{"p":`, 50) + `{}` + strings.Repeat(`}}`, 50)
	if names, _ := parameters([]byte(deep)); strings.Count(names, "p") > maxSchemaDepth+1 {
		t.Errorf("%d levels were read, want at most %d", strings.Count(names, "p"), maxSchemaDepth+1)
	}
}

func TestFirstSentence(t *testing.T) {
	for in, want := range map[string]string{
		"Reads a file. Then more.":           "Reads a file",
		"# Reads a file\n\nLong text.":       "Reads a file",
		"Version 2.0 of it; rest":            "Version 2.0 of it",
		"No end here":                        "No end here",
		"":                                   "",
		"  \n ":                              "",
		strings.Repeat("long ", 100) + ". x": strings.Repeat("long ", 60),
	} {
		if got := firstSentence(in); got != want {
			t.Errorf("firstSentence(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLexicon(t *testing.T) {
	lx := loadLexicon("# comment\nmail email # trailing\nrid > delete remove\n\nmail mail\n", "the a\nof", "ask: what\nchange: create delete\n", "")
	for stem, want := range map[string]string{"mail": "email", "email": "mail", "rid": "delet remov", "delet": "", "the": ""} {
		if got := strings.Join(lx.synonyms[stem], " "); got != want {
			t.Errorf("synonyms of %q = %q, want %q", stem, got, want)
		}
	}
	if !lx.stop["of"] || lx.stop["mail"] {
		t.Error("the stop words are wrong")
	}
	full := loadLexicon(thesaurusFile, stopFile, verbFile, phraseFile)
	if len(full.synonyms) < 500 {
		t.Errorf("%d words have synonyms; the file was not read", len(full.synonyms))
	}
	for word := range full.synonyms {
		if word != strings.ToLower(word) || word == "" {
			t.Errorf("%q is no stem", word)
		}
	}
}
