package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/search/searchtest"
)

const ownSet = "../../internal/search/testdata/own"

func TestRunPrintsATableForEveryRanker(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, []string{"-set", ownSet, "-fails"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"junctor: built in", "bm25: built in", "bleve: built in", "recall@5", "paraphrase", "249 tools, 168 queries", "wanted"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

// TestJunctorRanksAboveBaselines: Junctor's ranking finds more than the
// baselines.
func TestJunctorRanksAboveBaselines(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, []string{"-set", ownSet, "-json"}); err != nil {
		t.Fatal(err)
	}
	var results []result
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		t.Fatal(err)
	}
	if len(results) != len(rankers) || results[0].Ranker != "junctor" {
		t.Fatalf("results: %+v", results)
	}
	ours := results[0].Scores[searchtest.All]
	for _, r := range results[1:] {
		if theirs := r.Scores[searchtest.All]; theirs.Recall5 == 0 || theirs.Recall5 > ours.Recall5-0.2 {
			t.Errorf("recall@5 of %s is %.3f, ours %.3f", r.Ranker, theirs.Recall5, ours.Recall5)
		}
	}
}

// TestEvaluationThroughGatewayMatchesIndex: a running gateway finds the same
// tools as the index in process.
func TestEvaluationThroughGatewayMatchesIndex(t *testing.T) {
	program := filepath.Join(t.TempDir(), "junctor")
	if out, err := exec.Command("go", "-C", "../..", "build", "-o", program, "./cmd/junctor").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	var out bytes.Buffer
	if err := run(&out, []string{"-set", ownSet, "-json", "-through", program}); err != nil {
		t.Fatal(err)
	}
	var results []result
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		t.Fatal(err)
	}
	inProcess, overMCP := results[0].Scores[searchtest.All], results[len(results)-1].Scores[searchtest.All]
	if results[len(results)-1].Ranker != "gateway" || inProcess != overMCP {
		t.Errorf("in process %v\nover MCP   %v", inProcess, overMCP)
	}
}

func TestEvaluationNamesProgramThatIsNoGateway(t *testing.T) {
	for _, program := range []string{"/nowhere/junctor", "/bin/true"} {
		if err := run(&bytes.Buffer{}, []string{"-set", ownSet, "-through", program}); err == nil || !strings.Contains(err.Error(), program) {
			t.Errorf("through %s: error = %v", program, err)
		}
	}
}

func TestRunNamesMissingSet(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "nowhere")
	err := run(&bytes.Buffer{}, []string{"-set", missing})
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("error = %v, want the folder in it", err)
	}
}

func TestRunRefusesUnknownFlags(t *testing.T) {
	if err := run(&bytes.Buffer{}, []string{"-nonsense"}); err == nil {
		t.Error("no error")
	}
}

func TestDefaultSetsExist(t *testing.T) {
	t.Chdir("..")
	sets := defaultSets()
	if len(sets) == 0 {
		t.Fatal("no set")
	}
	for _, s := range sets {
		if _, err := os.Stat(filepath.Join(s, "tools.jsonl")); err != nil {
			t.Error(err)
		}
	}
}
