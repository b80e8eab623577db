package search

import (
	"slices"
	"strings"
	"testing"
)

func TestValuesAreRemovedFromQuery(t *testing.T) {
	for text, want := range map[string]string{
		"read a file": "read a file",
		"summarize https://www.example.com/blog/bake-bread?utm=x": "summarize example url",
		"clone https://api.github.com:443/a/b.":                   "clone github url",
		"open http://localhost:8080":                              "open localhost url",
		"open ://":                                                "open  url",
		"write to bob.smith@example.com":                          "write to email",
		"who is @bob":                                             "who is @bob",
		"meet @ 5":                                                "meet @ 5",
	} {
		if got := withoutValues(text); got != want {
			t.Errorf("withoutValues(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestArithmeticOperatorsInQuery(t *testing.T) {
	for text, want := range map[string]string{
		"What is 19 + 23?":               "+",
		"19+23":                          "+",
		"3 * (4 - 1)":                    "-*",
		"10 - 4":                         "-",
		"12 × 7":                         "*",
		"6 / 3":                          "/",
		"2 ** 8":                         "^",
		"what is 2 to the power of 10":   "^",
		"15% of 80":                      "%",
		"12 divided by 4 minus 1":        "-/",
		"2 + 3 * 4":                      "+*",
		"on 2024-05-01":                  "",
		"the 5/6 May":                    "",
		"a picture of 300 by 200":        "",
		"at 10 64 -3":                    "",
		"C++ and k8s":                    "",
		"how many are 5 and 6 of a kind": "",
	} {
		var got strings.Builder
		for _, s := range arithmetic() {
			if s.written.MatchString(text) {
				got.WriteString(s.phrase.words[0])
			}
		}
		if got.String() != want {
			t.Errorf("%q has %q, want %q", text, got.String(), want)
		}
	}
}

// TestNumbersAreValues checks that numbers in a query are treated as values:
// they neither displace its subject nor find a tool that happens to mention
// them.
func TestNumbersAreValues(t *testing.T) {
	ix := office()
	ix.Put("maths", docs("maths", "calculate: Evaluate an arithmetic expression.", "convert: Convert units, for example 19 km or 23 miles."))
	for text, want := range map[string]string{
		"What is 19 + 23?": "maths:calculate",
		"19*23":            "maths:calculate",
		"delete file 23":   "files:delete_file",
		"delete file 4a5e1e4baab89f3a32518a88c31bc87f": "files:delete_file",
		"drop bob@example.com a line by mail":          "mail:send_email",
	} {
		if got := find(t, ix, Query{Text: text}); len(got) == 0 || got[0] != want {
			t.Errorf("Search(%q) = %v, want %s first", text, got, want)
		}
	}
}

func TestPhrasesFindTools(t *testing.T) {
	ix := office()
	ix.Put("system", docs("system", "get_disk_space: Report the usage of the disks.", "drive_car: Drive the car."))
	ix.Put("geo", docs("geo", "get_location: Get the current location.", "distance: Distance between two points."))
	for text, want := range map[string]string{
		"how full is my hard drive":         "system:get_disk_space",
		"where am I":                        "geo:get_location",
		"how far apart are Rome and Milan?": "geo:distance",
	} {
		hits, err := ix.Search(Query{Text: text, Explain: true})
		if err != nil || len(hits) == 0 || hits[0].Name.String() != want {
			t.Errorf("Search(%q) = %v, %v; want %s first", text, hits, err, want)
			continue
		}
		if m := hits[0].Explanation.Matches; len(m) == 0 || m[len(m)-1].How != "phrase" {
			t.Errorf("Search(%q) is not explained by a phrase: %+v", text, m)
		}
	}
}

// TestMeaningsOfPhrasesAreKnownWords checks that the meanings of phrases are
// known words, because others find nothing.
func TestMeaningsOfPhrasesAreKnownWords(t *testing.T) {
	ix := New()
	for _, list := range ix.lx.phrases {
		for _, p := range list {
			if len(p.words) < 2 || len(p.means) == 0 {
				t.Errorf("phrase %q means %q", p.words, p.means)
			}
			for _, m := range p.means {
				if _, ok := ix.table.lookup(m); !ok {
					t.Errorf("phrase %q means %q, which the table does not know", p.words, m)
				}
			}
		}
	}
}

// TestToolsInLanguageOfQuery checks that a query in another language finds tools
// described in that language.
func TestToolsInLanguageOfQuery(t *testing.T) {
	ix := office()
	ix.Put("amt", docs("amt", "suche: Suche im Register der Stadt.", "wetter: Das Wetter von gestern."))
	if got := find(t, ix, Query{Text: "wie war das Wetter im Register"}); len(got) < 2 || !slices.Contains(got[:2], "amt:wetter") {
		t.Errorf("found %v", got)
	}
}
