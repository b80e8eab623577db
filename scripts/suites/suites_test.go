package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func parse(p parser, lines string) result {
	for line := range strings.Lines(lines) {
		p.line(strings.TrimSuffix(line, "\n"))
	}
	return p.result()
}

// events returns lines of go test -json, given action, package, test and
// output.
func events(t *testing.T, list ...[4]string) string {
	t.Helper()
	var b strings.Builder
	for _, e := range list {
		line, err := json.Marshal(event{Action: e[0], Package: "junctor/" + e[1], Test: e[2], Output: e[3]})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func TestGoEvents(t *testing.T) {
	r := parse(newGoTest(io.Discard), events(t,
		[4]string{"run", "a", "TestGood", ""},
		[4]string{"output", "a", "TestGood", "=== RUN   TestGood\n"},
		[4]string{"output", "a", "TestGood", `{"level":"INFO","msg":"a log line"}` + "\n"},
		[4]string{"pass", "a", "TestGood", ""},
		[4]string{"run", "a", "TestTable", ""},
		[4]string{"run", "a", "TestTable/one", ""},
		[4]string{"run", "a", "TestTable/two", ""},
		[4]string{"output", "a", "TestTable/two", "    a_test.go:7: it is wrong\n"},
		[4]string{"pass", "a", "TestTable/one", ""},
		[4]string{"fail", "a", "TestTable/two", ""},
		[4]string{"output", "a", "TestTable", "--- FAIL: TestTable (0.00s)\n"},
		[4]string{"fail", "a", "TestTable", ""},
		[4]string{"run", "a", "TestSkipped", ""},
		[4]string{"output", "a", "TestSkipped", "    a_test.go:9: Chromium is missing; run make setup\n"},
		[4]string{"skip", "a", "TestSkipped", ""},
		[4]string{"fail", "a", "", ""},
	))
	if r.passed != 2 {
		t.Errorf("%d passed, want 2", r.passed)
	}
	if want := []failure{{"a TestTable/two", "    a_test.go:7: it is wrong\n"}}; !slices.Equal(r.failed, want) {
		t.Errorf("failed %+v, want %+v", r.failed, want)
	}
	if want := []skip{{"a TestSkipped", "Chromium is missing; run make setup"}}; !slices.Equal(r.skipped, want) {
		t.Errorf("skipped %+v, want %+v", r.skipped, want)
	}
}

func TestGoPackageThatCrashes(t *testing.T) {
	r := parse(newGoTest(io.Discard), events(t,
		[4]string{"run", "a", "TestStuck", ""},
		[4]string{"output", "a", "TestStuck", "panic: test timed out\n"},
		[4]string{"fail", "a", "", ""},
		[4]string{"output", "b", "", "exit status 3\n"},
		[4]string{"fail", "b", "", ""},
	))
	if want := []failure{{"a TestStuck (unfinished)", "panic: test timed out\n"}, {"b", "exit status 3\n"}}; !slices.Equal(r.failed, want) {
		t.Errorf("failed %+v, want %+v", r.failed, want)
	}
}

func TestGoPackageThatDoesNotBuild(t *testing.T) {
	r := parse(newGoTest(io.Discard), `{"ImportPath":"junctor/a [junctor/a.test]","Action":"build-output","Output":"a/x.go:3: undefined: y\n"}
{"ImportPath":"junctor/a [junctor/a.test]","Action":"build-fail"}
{"Action":"start","Package":"junctor/a"}
{"Action":"fail","Package":"junctor/a","Elapsed":0,"FailedBuild":"junctor/a [junctor/a.test]"}
`)
	if want := []failure{{"a does not build", "a/x.go:3: undefined: y\n"}}; !slices.Equal(r.failed, want) {
		t.Errorf("failed %+v, want %+v", r.failed, want)
	}
}

func TestTextFormats(t *testing.T) {
	for _, tt := range []struct {
		name, output string
		format       textFormat
		passed       int
		failed       []string
		skipped      []skip
	}{
		{
			name: "vitest", format: vitest, passed: 39, failed: []string{"src/a.test.ts > it adds"}, skipped: []skip{{"a test", "no reason given"}, {"a test", "no reason given"}},
			output: " ❯ src/a.test.ts (2 tests | 1 failed)\n⎯⎯ Failed Tests 1 ⎯⎯\n\n FAIL  src/a.test.ts > it adds\nAssertionError: 1 is not 2\n\n Test Files  1 failed | 5 passed (6)\n      Tests  1 failed | 39 passed | 2 skipped (42)\n",
		},
		{
			name: "node", format: nodeTest, passed: 3, failed: []string{"it adds"}, skipped: []skip{{"later", "not yet"}},
			output: "✔ it runs (1.2ms)\n✖ it adds (2ms)\n﹣ later (0.1ms) # not yet\nℹ tests 5\nℹ pass 3\nℹ fail 1\nℹ cancelled 0\nℹ skipped 1\n\n✖ failing tests:\n\ntest at a.js:1:1\n✖ it adds (2ms)\n  AssertionError: 1 is not 2\n",
		},
		{
			name: "unittest", format: unittest, passed: 5, failed: []string{"test_adds (test_a.Adds.test_adds)", "test_reads (test_a.Reads.test_reads)"}, skipped: []skip{{"test_later (test_a.A.test_later)", "not yet"}},
			output: "test_adds (test_a.Adds.test_adds) ... FAIL\ntest_later (test_a.A.test_later) ... skipped 'not yet'\n======================\nFAIL: test_adds (test_a.Adds.test_adds)\n------\nAssertionError: 1 is not 2\n======================\nERROR: test_reads (test_a.Reads.test_reads)\n------\nOSError\n\nRan 8 tests in 0.1s\n\nFAILED (failures=1, errors=1, skipped=1)\n",
		},
		{name: "all is well", format: unittest, passed: 2, output: "Ran 2 tests in 0.1s\n\nOK\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := parse(newText(tt.format)(io.Discard), tt.output)
			var failed []string
			for _, f := range r.failed {
				failed = append(failed, f.test)
			}
			if r.passed != tt.passed || !slices.Equal(failed, tt.failed) || !slices.Equal(r.skipped, tt.skipped) {
				t.Errorf("passed %d, failed %q, skipped %q", r.passed, failed, r.skipped)
			}
			if len(r.failed) > 0 && !strings.Contains(r.failed[0].output, tt.failed[0]) {
				t.Errorf("details: %q", r.failed[0].output)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	var out bytes.Buffer
	summarize(&out, []outcome{
		{suite: "go", took: 61 * time.Second, result: result{passed: 10, failed: []failure{{"a TestX", "    a_test.go:1: wrong\n"}},
			skipped: []skip{{"a TestA", "no key"}, {"a TestB", "no key"}, {"a TestC", "no key"}, {"a TestD", "no key"}}}},
		{suite: "web", took: 3 * time.Second, result: result{passed: 5}},
	})
	want := `
--- FAIL: a TestX
    a_test.go:1: wrong

skipped:
  a TestA, a TestB, a TestC and 1 more: no key
failed:
  a TestX
  suite  passed  failed  skipped  seconds
     go      10       1        4       61
    web       5       0        0        3
    all      15       1        4       64
15 passed, 1 failed, 4 skipped
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

// TestCommandThatFails: a command that fails without naming a failed test
// counts as a failure, too.
func TestCommandThatFails(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		command string
		want    string
	}{
		{"echo cannot compile; exit 2", "cannot compile\nexit status 2"},
		{"true", ""},
	} {
		r, err := execute(t.Context(), io.Discard, suite{name: "x", command: []string{"sh", "-c", tt.command}, parser: newText(nodeTest)}, dir+"/x.log")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(r.failed) > 0 {
			got = r.failed[0].output
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.command, got, tt.want)
		}
	}
}

func TestUnknownSuite(t *testing.T) {
	if code, err := run(t.Context(), io.Discard, false, []string{"nonsense"}); code != 2 || err == nil {
		t.Errorf("run = %d, %v", code, err)
	}
}

func TestSlowestPackagesExist(t *testing.T) {
	for _, p := range slowest {
		if _, err := os.Stat("../../" + p); err != nil {
			t.Error(err)
		}
	}
	if rank("junctor/cmd/junctor") >= rank("junctor/internal/address") {
		t.Error("a slow package starts after a fast one")
	}
}
