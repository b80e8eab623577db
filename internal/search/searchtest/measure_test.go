package searchtest

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/search"
	"junctor/internal/tool"
)

func name(s string) tool.Name { return tool.Name{Server: "s", Tool: s} }

func TestMeasure(t *testing.T) {
	set := &Set{Queries: []Query{
		{Text: "first", Kind: "keyword", Needs: [][]tool.Name{{name("a"), name("b")}}},
		{Text: "third", Kind: "keyword", Needs: [][]tool.Name{{name("a")}}},
		{Text: "two needs", Kind: "multi", Needs: [][]tool.Name{{name("a")}, {name("z")}}},
		{Text: "nothing", Kind: "request", Needs: [][]tool.Name{{name("a")}}},
		{Text: "seventh", Kind: "request", Needs: [][]tool.Name{{name("a")}}},
	}}
	answers := map[string]string{
		"first": "b a", "third": "x y a", "two needs": "z a", "nothing": "", "seventh": "1 2 3 4 5 6 a",
	}
	got := Measure(set, func(text string) []tool.Name {
		var list []tool.Name
		for _, s := range strings.Fields(answers[text]) {
			list = append(list, name(s))
		}
		return list
	})
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s = %.4f, want %.4f", what, got, want)
		}
	}
	all := got[All]
	near("queries", float64(all.Queries), 5)
	near("recall@1", all.Recall1, (1+0+0.5+0+0)/5)
	near("recall@5", all.Recall5, (1+1+1+0+0)/5.0)
	near("recall@10", all.Recall10, (1+1+1+0+1)/5.0)
	near("MRR", all.MRR, (1+1.0/3+1+0+1.0/7)/5)
	near("nDCG@5", all.NDCG5, (1+0.5+1+0+0)/5)
	near("keywords", got["keyword"].Recall1, 0.5)
	if !strings.Contains(all.String(), "recall@5 0.600") && !strings.Contains(all.String(), "@5 0.600") {
		t.Errorf("String() = %q", all)
	}
}

func write(t *testing.T, tools, queries string) string {
	t.Helper()
	folder := t.TempDir()
	for file, content := range map[string]string{"tools.jsonl": tools, "queries.jsonl": queries} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const oneTool = `{"server":"s","tool":"a","description":"d","inputSchema":{"type":"object"}}` + "\n\n"

func TestLoad(t *testing.T) {
	set, err := Load(write(t, oneTool+`{"server":"s","tool":"b"}`,
		`{"id":"1","query":"q","kind":"multi","relevant":[{"server":"s","tool":"a","group":"g"},{"server":"s","tool":"b","group":"g"},{"server":"s","tool":"a"},{"server":"s","tool":"b"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Docs) != 2 || len(set.Queries) != 1 || len(set.Queries[0].Needs) != 3 || len(set.Queries[0].Needs[0]) != 2 {
		t.Errorf("set = %+v", set)
	}
	ix := search.New()
	set.Fill(ix)
	if ix.Len() != 2 {
		t.Errorf("the index has %d tools, want 2", ix.Len())
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ tools, queries, want string }{
		"broken tools":   {tools: "{", want: "tools.jsonl:1"},
		"broken queries": {tools: oneTool, queries: "[]", want: "queries.jsonl:1"},
		"unknown tool":   {tools: oneTool, queries: `{"id":"7","relevant":[{"server":"s","tool":"x"}]}`, want: "no tool s:x"},
		"no need":        {tools: oneTool, queries: `{"id":"7","relevant":[]}`, want: "asks for nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(write(t, tt.tools, tt.queries))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q in it", err, tt.want)
			}
		})
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("an empty folder is no error")
	}
}
