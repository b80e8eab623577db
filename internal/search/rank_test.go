package search

import (
	"math"
	"slices"
	"strings"
	"testing"

	"junctor/internal/tool"
)

func office() *Index {
	ix := New()
	mail := docs("mail", "send_email: Send an email with attachments.", "move_to_trash: Move a message to the trash.", "search_emails: Search the mailbox.")
	mail[0].Tags = []string{"write", "mail"}
	mail[2].Tags = []string{"read"}
	ix.Put("mail", mail)
	ix.Put("files", docs("files", "read_file: Read a file as text.", "delete_file: Delete a file.", "search: Search for files by name."))
	ix.Put("cloud", docs("cloud", "keyvault_secret_get: Get a secret from the vault.", "blobUpload: Upload a blob to storage.", "search: Search resources."))
	return ix
}

func TestSearchFinds(t *testing.T) {
	ix := office()
	for name, tt := range map[string]struct{ text, want string }{
		"words":              {"read a file", "files:read_file"},
		"synonym":            {"remove a document", "files:delete_file"},
		"said otherwise":     {"get rid of that mail", "mail:move_to_trash"},
		"parted here":        {"key vault secret", "cloud:keyvault_secret_get"},
		"together here":      {"blobupload", "cloud:blobUpload"},
		"stem":               {"deleting files", "files:delete_file"},
		"server in query":    {"search mail", "mail:search_emails"},
		"meaning alone":      {"compose a letter to my colleague", "mail:send_email"},
		"qualified name":     {"files:search", "files:search"},
		"name of the direct": {"cloud__search", "cloud:search"},
		"name in other case": {"SEARCH EMAILS", "mail:search_emails"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := find(t, ix, Query{Text: tt.text}); len(got) == 0 || got[0] != tt.want {
				t.Errorf("Search(%q) = %v, want %s first", tt.text, got, tt.want)
			}
		})
	}
}

func TestFilters(t *testing.T) {
	ix := office()
	for name, tt := range map[string]struct {
		q    Query
		want []string
	}{
		"one server":     {Query{Text: "search", Servers: []string{"files"}}, []string{"files:search"}},
		"two servers":    {Query{Text: "search", Servers: []string{"files", "cloud"}}, []string{"cloud:search", "files:search"}},
		"unknown server": {Query{Text: "search", Servers: []string{"nobody"}}, nil},
		"tag":            {Query{Text: "email", Tags: []string{"read"}}, []string{"mail:search_emails"}},
		"one of tags":    {Query{Text: "email", Tags: []string{"mail", "read"}}, []string{"mail:search_emails", "mail:send_email"}},
		"server and tag": {Query{Text: "email", Servers: []string{"files"}, Tags: []string{"read"}}, nil},
		"keep":           {Query{Text: "search", Keep: func(n tool.Name) bool { return n.Server == "cloud" }}, []string{"cloud:search"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := find(t, ix, tt.q)
			for _, g := range tt.want {
				if !slices.Contains(got, g) {
					t.Errorf("found %v, want %v among them", got, tt.want)
				}
			}
			for _, g := range got {
				n, err := tool.ParseName(g)
				if err != nil {
					t.Fatal(err)
				}
				if len(tt.q.Servers) > 0 && !slices.Contains(tt.q.Servers, n.Server) || tt.q.Keep != nil && !tt.q.Keep(n) || tt.q.Tags != nil && n.Server != "mail" {
					t.Errorf("%s is not let through by the filter", g)
				}
			}
			if tt.want == nil && len(got) > 0 {
				t.Errorf("found %v, want nothing", got)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	ix := New()
	var list []string
	for _, a := range strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu") {
		for _, b := range strings.Fields("one two three four five six seven eight nine ten") {
			list = append(list, a+"_"+b+": Report about sales.")
		}
	}
	ix.Put("s", docs("s", list...))
	for limit, want := range map[int]int{0: defaultLimit, 1: 1, 7: 7, 100: 100, 5000: MaxLimit} {
		if got := find(t, ix, Query{Text: "sales report", Limit: limit}); len(got) != want {
			t.Errorf("limit %d gives %d hits, want %d", limit, len(got), want)
		}
	}
	// A smaller limit gives the first of these hits, and relevance decreases.
	all, err := ix.Search(Query{Text: "sales report of alpha", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	some := find(t, ix, Query{Text: "sales report of alpha", Limit: 9})
	for i := range all {
		if i < 9 && all[i].Name.String() != some[i] {
			t.Errorf("hit %d is %s with one limit and %s with another", i, all[i].Name, some[i])
		}
		if i > 0 && all[i].Relevance > all[i-1].Relevance {
			t.Errorf("hit %d is more relevant than the one before", i)
		}
	}
}

func TestSearchRefusesInvalidQueries(t *testing.T) {
	ix := office()
	for name, q := range map[string]Query{
		"no text":        {},
		"spaces":         {Text: " \n\t "},
		"negative limit": {Text: "file", Limit: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ix.Search(q); tool.KindOf(err) != tool.InvalidArguments {
				t.Errorf("error = %v, want %s", err, tool.InvalidArguments)
			}
		})
	}
}

func TestSearchAcceptsAnyText(t *testing.T) {
	ix := office()
	for name, text := range map[string]string{
		"only stop words": "what is the of and to",
		"emoji":           "🚀🎉👩‍👩‍👧‍👦",
		"punctuation":     "?!;--\\\"'",
		"other scripts":   "Прочитай файл 查询天气 ファイルを読む",
		"right to left":   "اقرأ الملف",
		"invalid UTF-8":   "read \xff\xfe a \xc3\x28 file",
		"zero bytes":      "read\x00file",
		"100 KB":          strings.Repeat("please read the quarterly report file and ", 2500),
		"100 KB one word": strings.Repeat("a", 100<<10),
		"100 KB of é":     strings.Repeat("é", 50<<10),
		"many words":      strings.Join(strings.Fields(tableFile[len(tableFile)-60000:]), " "),
		"unknown words":   "xqzzt wvvut bnnqr",
	} {
		t.Run(name, func(t *testing.T) {
			hits, err := ix.Search(Query{Text: text, Explain: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				if !(h.Relevance >= 0 && h.Relevance <= 1) {
					t.Errorf("relevance %v of %s is out of range", h.Relevance, h.Name)
				}
			}
		})
	}
}

func TestRelevanceReflectsMatch(t *testing.T) {
	ix := office()
	best := func(text string) float64 {
		hits, err := ix.Search(Query{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) == 0 {
			return 0
		}
		return hits[0].Relevance
	}
	if r := best("read_file"); r != 1 {
		t.Errorf("the exact name has relevance %.2f, want 1", r)
	}
	if r := best("send an email with attachments"); r < 0.8 {
		t.Errorf("a good match has relevance %.2f, want more than 0.8", r)
	}
	for _, text := range []string{"what is the capital of Mongolia", "bake a chocolate cake", "xqzzt wvvut"} {
		if r := best(text); r > 0.4 {
			t.Errorf("%q, for which there is no tool, has a best match of %.2f", text, r)
		}
	}
}

func TestEqualScoresAreInTheOrderOfNames(t *testing.T) {
	ix := New()
	for _, server := range []string{"c", "a", "b"} {
		ix.Put(server, docs(server, "zeta: Report about sales.", "alpha: Report about sales."))
	}
	want := []string{"a:zeta", "b:zeta", "c:zeta"}
	got := slices.DeleteFunc(find(t, ix, Query{Text: "zeta"}), func(s string) bool { return !strings.HasSuffix(s, "zeta") })
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

func TestRankingKeepsTheBest(t *testing.T) {
	names := make([]tool.Name, 200)
	r := ranking{keep: 10, names: names}
	var all []candidate
	rnd := uint32(7)
	for i := range names {
		rnd = rnd*1664525 + 1013904223
		c := candidate{tool: uint32(i), score: float32(rnd>>24) / 256}
		if i%50 == 49 {
			c.tier = exactName
		}
		all = append(all, c)
		if r.wants(c) {
			r.add(c)
		}
	}
	slices.SortFunc(all, r.compare)
	if !slices.Equal(r.list, all[:10]) {
		t.Errorf("kept %v, want %v", r.list, all[:10])
	}
}

func TestSignals(t *testing.T) {
	ix := New()
	ix.Put("a", docs("a", "get_report: Sales report."))
	ix.Put("b", docs("b", "get_report: Sales report."))
	ix.Put("c", docs("c", "unrelated: Something about sales elsewhere."))
	for name, tt := range map[string]struct {
		signal map[string]Signal
		want   string
	}{
		"none":                    {nil, "a"},
		"used by all":             {map[string]Signal{"b": {Calls: 50, Successes: 50}}, "b"},
		"used by the caller":      {map[string]Signal{"b": {CallerCalls: 5, CallerSuccesses: 5}}, "b"},
		"mine before theirs":      {map[string]Signal{"a": {Calls: 100, Successes: 100}, "b": {CallerCalls: 100, CallerSuccesses: 100}}, "b"},
		"used, but it fails":      {map[string]Signal{"a": {Calls: 50, Successes: 2}}, "b"},
		"circuit open":            {map[string]Signal{"a": {CircuitOpen: true}}, "b"},
		"down":                    {map[string]Signal{"a": {Down: true}, "b": {CircuitOpen: true}}, "b"},
		"bounded":                 {map[string]Signal{"c": {Calls: math.MaxInt64, Successes: math.MaxInt64, CallerCalls: math.MaxInt64, CallerSuccesses: math.MaxInt64}}, "a"},
		"more successes than all": {map[string]Signal{"b": {Calls: 1, Successes: math.MaxInt64}}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			q := Query{Text: "sales report", Signals: func(n tool.Name) Signal { return tt.signal[n.Server] }}
			if got := find(t, ix, q); got[0] != tt.want+":get_report" {
				t.Errorf("found %v, want %s:get_report first", got, tt.want)
			}
		})
	}
	for _, g := range []Signal{
		{Calls: math.MaxInt64, Successes: math.MaxInt64, CallerCalls: math.MaxInt64, CallerSuccesses: math.MaxInt64},
		{Calls: 9, Successes: -9, CallerCalls: 9, Down: true, CircuitOpen: true},
	} {
		if s := g.shift(); math.Abs(float64(s)) > 0.25 {
			t.Errorf("%+v shifts by %v", g, s)
		}
	}
	// The exact name is first regardless of the signals.
	q := Query{Text: "a:get_report", Signals: func(n tool.Name) Signal { return Signal{Down: n.Server == "a"} }}
	if got := find(t, ix, q); got[0] != "a:get_report" {
		t.Errorf("found %v, want the named tool first", got)
	}
}

// TestQuestionsPreferReadOnlyTools checks that a question prefers tools that
// change nothing, according to their hint or their name.
func TestQuestionsPreferReadOnlyTools(t *testing.T) {
	yes, no := true, false
	ix := New()
	list := docs("charts", "chart_update: Charts of the workspace.", "chart_list: Charts of the workspace.")
	ix.Put("charts", list)
	for text, want := range map[string]string{
		"which charts of the workspace exist": "charts:chart_list",
		"show charts of the workspace":        "charts:chart_list",
		"update charts of the workspace":      "charts:chart_update",
	} {
		if got := find(t, ix, Query{Text: text}); got[0] != want {
			t.Errorf("Search(%q) = %v, want %s first", text, got, want)
		}
	}
	list[0].ReadOnly, list[1].ReadOnly = &yes, &no
	ix.Put("charts", list)
	hits, err := ix.Search(Query{Text: "which charts of the workspace exist", Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		if changes := h.Name.Tool == "chart_list"; (h.Explanation.Action < 0) != changes {
			t.Errorf("%s has the action %v against its hint", h.Name, h.Explanation.Action)
		}
	}
	for text, want := range map[string]bool{
		"what tables are there":   true,
		"get rid of that file":    false, // means delete
		"can you create an issue": false,
		"tables":                  false, // not a question
	} {
		var p planner
		if got := p.prepare(ix, ix.current(), text).onlyAsks; got != want {
			t.Errorf("%q only asks: %v, want %v", text, got, want)
		}
	}
}

// TestServerNamedInQuery checks that the name of a product in a query ranks the
// tools of its server higher, and that a common word in the name of a server
// does not.
func TestServerNamedInQuery(t *testing.T) {
	ix := New()
	ix.Put("figma-mcp", docs("figma-mcp", "set_text: Set the characters of a node.", "export_node: Export a node.", "get_styles: Styles of the file."))
	ix.Put("mail", docs("mail", "update_label: Change a label.", "list_labels: Labels of the mailbox.", "send: Send mail."))
	ix.Put("file-search", docs("file-search", "find: Find files by name."))
	ix.Put("other", docs("other", "search_web: Search the web.", "search_news: Search news.", "file_info: Facts about a file."))
	hits, err := ix.Search(Query{Text: "change the labels of my Figma drawing", Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		if named := h.Name.Server == "figma-mcp"; (h.Explanation.Server > 0) != named {
			t.Errorf("%s gains %.2f by the name of its server", h.Name, h.Explanation.Server)
		}
	}
	hits, err = ix.Search(Query{Text: "search for something", Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		if h.Explanation.Server != 0 {
			t.Errorf("%s gains %.2f by a common word", h.Name, h.Explanation.Server)
		}
	}
}

func TestExplain(t *testing.T) {
	ix := office()
	q := Query{Text: "remove the quarterly fiel in Mongolia", Explain: true, Limit: 3, Signals: func(tool.Name) Signal { return Signal{Calls: 3, Successes: 3} }}
	hits, err := ix.Search(q)
	if err != nil {
		t.Fatal(err)
	}
	e := hits[0].Explanation
	if hits[0].Name.Tool != "delete_file" || e == nil {
		t.Fatalf("first hit is %v with explanation %v", hits[0].Name, e)
	}
	if sum := e.Words + e.NameMatch + e.Server + e.Meaning + e.Action + e.Signals; math.Abs(sum-e.Score) > 1e-3 {
		t.Errorf("the parts add up to %.4f, the score is %.4f", sum, e.Score)
	}
	how := map[string]string{}
	var words float64
	for _, m := range e.Matches {
		how[m.Word] = m.How + " " + m.Term + " in " + strings.Join(m.Fields, ",")
		words += m.Score
	}
	if math.Abs(words-e.Words) > 1e-3 {
		t.Errorf("the matches add up to %.4f, want %.4f", words, e.Words)
	}
	if how["remove"] != "synonym delet in name,description" || how["fiel"] != "spelling file in name,server,description" {
		t.Errorf("matches: %v", how)
	}
	if !slices.Contains(e.Unmatched, "mongolia") {
		t.Errorf("unmatched: %v, want mongolia among them", e.Unmatched)
	}
	if e.Named || e.Signal == nil || e.Signals <= 0 {
		t.Errorf("explanation %+v", e)
	}
	hits, err = ix.Search(Query{Text: "read_file", Explain: true, Limit: 1})
	if err != nil || !hits[0].Explanation.Named || hits[0].Explanation.Signal != nil {
		t.Errorf("explanation of the exact name: %+v, %v", hits[0].Explanation, err)
	}
}
