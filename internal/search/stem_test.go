package search

import "testing"

func TestStem(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		// From Porter's paper: one word for each rule.
		{"caresses", "caress"}, {"ponies", "poni"}, {"cats", "cat"}, {"caress", "caress"},
		{"feed", "feed"}, {"agreed", "agre"}, {"plastered", "plaster"}, {"bled", "bled"},
		{"motoring", "motor"}, {"sing", "sing"}, {"conflated", "conflat"}, {"troubled", "troubl"},
		{"sized", "size"}, {"hopping", "hop"}, {"falling", "fall"}, {"hissing", "hiss"},
		{"filing", "file"}, {"happy", "happi"}, {"sky", "sky"}, {"relational", "relat"},
		{"conditional", "condit"}, {"digitizer", "digit"}, {"operator", "oper"},
		{"feudalism", "feudal"}, {"decisiveness", "decis"}, {"hopefulness", "hope"},
		{"formality", "formal"}, {"sensibility", "sensibl"}, {"triplicate", "triplic"},
		{"formative", "form"}, {"electrical", "electr"}, {"goodness", "good"},
		{"allowance", "allow"}, {"replacement", "replac"}, {"adoption", "adopt"},
		{"effective", "effect"}, {"probate", "probat"}, {"rate", "rate"}, {"controll", "control"},
		{"roll", "roll"}, {"cease", "ceas"}, {"yes", "ye"}, {"syzygy", "syzygi"},
		// Our additions and exceptions.
		{"summarise", "summar"}, {"summarize", "summar"}, {"organisations", "organ"}, {"organizations", "organ"},
		{"status", "status"}, {"k8s", "k8s"}, {"s3", "s3"}, {"id", "id"}, {"über", "über"},
	} {
		if got := stemOf(tt.in); got != tt.want {
			t.Errorf("stemOf(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestStemJoinsForms(t *testing.T) {
	for _, forms := range [][]string{
		{"create", "creates", "created", "creating"},
		{"delete", "deletes", "deleted", "deleting", "deletion"},
		{"repository", "repositories"},
		{"query", "queries"},
		{"summarise", "summarize", "summarising", "summarized"},
		{"schedule", "scheduled", "scheduling", "schedules"},
	} {
		for _, f := range forms[1:] {
			if a, b := stemOf(forms[0]), stemOf(f); a != b {
				t.Errorf("%q has the stem %q, %q has %q", forms[0], a, f, b)
			}
		}
	}
}

func TestSpellingVariants(t *testing.T) {
	for in, want := range map[string]string{
		"summarise": "summarize", "organisation": "organization", "colour": "color",
		"favourite": "favorite", "behaviours": "behaviors", "hour": "hour", "rise": "rise", "file": "file",
	} {
		if got := americanise(in); got != want {
			t.Errorf("americanise(%q) = %q, want %q", in, got, want)
		}
	}
}
