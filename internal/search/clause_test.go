package search

import (
	"slices"
	"strings"
	"testing"
)

func TestQueryIsSplitIntoClauses(t *testing.T) {
	lx := New().lx
	for text, want := range map[string][]string{
		"read the file and delete it":                nil, // the second clause has too few words
		"insert and run a cell":                      nil, // the first clause has too few words
		"list files and folders of a project":        nil, // no verb after "and"
		"title, authors and abstract of a paper":     nil,
		"send an email":                              nil,
		"":                                           nil,
		"and then ; and":                             nil,
		"read the log file and send an email":        {"read the log file ", "send an email"},
		"read the log file and then some email text": {"read the log file ", " some email text"},
		"read the log file, afterwards draw the company chart":          {"read the log file, ", " draw the company chart"},
		"read log file; draw company chart":                             {"read log file", " draw company chart"},
		"Read log file AND Draw company chart":                          {"Read log file ", "Draw company chart"},
		"read log file; draw company chart; send team email":            {"read log file", " draw company chart", " send team email"},
		"read log file; draw a chart now; send team email; copy a file": nil, // too many clauses: a plan rather than a query
		"Übersetze Datei ähnlich and send späte Grüße":                  {"Übersetze Datei ähnlich ", "send späte Grüße"},
	} {
		if got := lx.clauses(text); !slices.Equal(got, want) {
			t.Errorf("clauses(%q) = %q, want %q", text, got, want)
		}
	}
	if got := lx.clauses(strings.Repeat("read log file; ", maxQueryBytes)); got != nil {
		t.Errorf("a text of any length is cut into %d clauses", len(got))
	}
}

// TestBothClausesOfQueryAreFound checks that tools for both clauses are near the
// top, even if many tools match one of them.
func TestBothClausesOfQueryAreFound(t *testing.T) {
	ix := office()
	ix.Put("video", docs("video", "get_transcript: Get the transcript of a video.", "transcript: Transcript of a video.",
		"video_transcript: The transcript of any video.", "transcribe: Transcribe a video into text.",
		"download_transcript: Download the transcript of a video.", "transcripts: List the transcripts of a video."))
	const text = "get the transcript of a video and then delete a file"
	hits, err := ix.Search(Query{Text: text, Limit: 3, Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	var names, clauses []string
	for _, h := range hits {
		names = append(names, h.Name.String())
		clauses = append(clauses, h.Explanation.Clause)
	}
	if len(hits) != 3 || !slices.Contains(names, "video:get_transcript") || !slices.Contains(names, "files:delete_file") {
		t.Errorf("Search(%q) = %v", text, names)
	}
	if !slices.Contains(clauses, "delete a file") {
		t.Errorf("no explanation names the clause: %q", clauses)
	}
	seen := map[string]bool{}
	for _, n := range find(t, ix, Query{Text: text}) {
		if seen[n] {
			t.Errorf("%s is there twice", n)
		}
		seen[n] = true
	}
}

// TestNameWithTwoVerbs checks that a tool whose name reads like two requests is
// found by its name.
func TestNameWithTwoVerbs(t *testing.T) {
	ix := office()
	ix.Put("odd", docs("odd", "read text file and delete file: Nothing of the kind."))
	if got := find(t, ix, Query{Text: "Read text file and delete file"}); len(got) == 0 || got[0] != "odd:read text file and delete file" {
		t.Errorf("found %v", got)
	}
}
