package search

import (
	"testing"
	"testing/quick"

	"junctor/internal/tool"
)

// slowEdits is the textbook algorithm, without bands or a limit.
func slowEdits(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			c := 1
			if a[i-1] == b[j-1] {
				c = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+c)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

func TestEditsAgreesWithTheTextbook(t *testing.T) {
	word := func(x []byte) string {
		b := make([]byte, min(len(x), 12))
		for i := range b {
			b[i] = 'a' + x[i]%4 // few letters, so that words are similar
		}
		return string(b)
	}
	agree := func(x, y []byte) bool {
		a, b := word(x), word(y)
		for limit := 1; limit <= 2; limit++ {
			if got, want := edits(a, b, limit), min(slowEdits(a, b), limit+1); min(got, limit+1) != want {
				t.Logf("edits(%q, %q, %d) = %d, want %d", a, b, limit, got, want)
				return false
			}
		}
		return true
	}
	if err := quick.Check(agree, &quick.Config{MaxCount: 20000}); err != nil {
		t.Error(err)
	}
}

func TestMisspeltWordsAreFound(t *testing.T) {
	ix := New()
	ix.Put("s", []Doc{
		{Name: tool.Name{Server: "s", Tool: "generate_password"}, Description: "Generate a random password."},
		{Name: tool.Name{Server: "s", Tool: "create_issue"}, Description: "Open issues in a repository."},
		{Name: tool.Name{Server: "s", Tool: "screenshot"}, Description: "Capture the page."},
		{Name: tool.Name{Server: "s", Tool: "translate"}, Description: "Translate text."},
	})
	for text, want := range map[string]string{
		"genrate a pasword":     "generate_password",
		"creat an isue":         "create_issue",
		"take a screnshot":      "screenshot",
		"trasnlate a sentence":  "translate",
		"pssword, new random":   "generate_password",
		"repositry issue":       "create_issue",
		"screenhsot of my page": "screenshot",
	} {
		hits, err := ix.Search(Query{Text: text, Limit: 1})
		if err != nil || len(hits) == 0 || hits[0].Name.Tool != want {
			t.Errorf("Search(%q) = %v, %v; want %s first", text, hits, err, want)
		}
	}
}

func TestCorrectWordsAreNotChanged(t *testing.T) {
	ix := New()
	ix.Put("s", []Doc{{Name: tool.Name{Server: "s", Tool: "planet_info"}, Description: "About planets."}})
	s := ix.current()
	for _, w := range []string{"xy", "abc", "planetarium", "zzzzzzzzzz", string(make([]byte, 100))} {
		if id, ok := s.correct(w, w); ok {
			t.Errorf("%q was corrected to %q", w, s.terms.terms[id])
		}
	}
	var p planner
	plan := p.prepare(ix, s, "plant") // another English word, one edit away
	for _, a := range plan.words[0].alternatives {
		if a.why == asCorrection {
			t.Errorf("plant was corrected to %q", s.terms.terms[a.term])
		}
	}
}
