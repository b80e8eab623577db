package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// outcome is the result of a suite.
type outcome struct {
	suite string
	result
	took time.Duration
}

// summarize prints the output of failed tests, then the summary.
func summarize(w io.Writer, outcomes []outcome) {
	var total result
	var took time.Duration
	for _, o := range outcomes {
		total.passed += o.passed
		total.failed = append(total.failed, o.failed...)
		total.skipped = append(total.skipped, o.skipped...)
		took += o.took
	}
	for _, f := range total.failed {
		fmt.Fprintf(w, "\n--- FAIL: %s\n%s\n", f.test, strings.TrimRight(f.output, "\n"))
	}
	fmt.Fprintln(w)
	if len(total.skipped) > 0 {
		fmt.Fprintln(w, "skipped:")
		for _, line := range byReason(total.skipped) {
			fmt.Fprintln(w, "  "+line)
		}
	}
	if len(total.failed) > 0 {
		fmt.Fprintln(w, "failed:")
		for _, f := range total.failed {
			fmt.Fprintln(w, "  "+f.test)
		}
		if left, _ := filepath.Glob(filepath.Join(".cache", "failed", "*")); len(left) > 0 {
			if abs, err := filepath.Abs(filepath.Join(".cache", "failed")); err == nil {
				fmt.Fprintln(w, "  logs and screenshots: "+abs)
			}
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "suite\tpassed\tfailed\tskipped\tseconds\t")
	for _, o := range outcomes {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.0f\t\n", o.suite, o.passed, len(o.failed), len(o.skipped), o.took.Seconds())
	}
	fmt.Fprintf(table, "all\t%d\t%d\t%d\t%.0f\t\n", total.passed, len(total.failed), len(total.skipped), took.Seconds())
	_ = table.Flush()
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", total.passed, len(total.failed), len(total.skipped))
}

// byReason returns one line for each reason: at most three of the tests, and
// the reason.
func byReason(skips []skip) []string {
	tests := map[string][]string{}
	var reasons []string
	for _, s := range skips {
		if tests[s.reason] == nil {
			reasons = append(reasons, s.reason)
		}
		tests[s.reason] = append(tests[s.reason], s.test)
	}
	lines := make([]string, 0, len(reasons))
	for _, r := range reasons {
		names := tests[r]
		text := strings.Join(names[:min(3, len(names))], ", ")
		if n := len(names) - 3; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		lines = append(lines, text+": "+r)
	}
	slices.Sort(lines)
	return lines
}
