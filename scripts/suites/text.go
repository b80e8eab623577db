package main

import (
	"io"
	"regexp"
	"strconv"
	"strings"
)

// textFormat describes the output of a test runner that prints for people. Each
// pattern has the number or the text in its first group.
type textFormat struct {
	passed, failed, skipped *regexp.Regexp // numbers in the last lines; without failed, named failures are counted
	all                     *regexp.Regexp // the total, if the runner does not print the number of passed tests
	skippedTest             *regexp.Regexp // a test and a reason
	failedTest              *regexp.Regexp
	details                 *regexp.Regexp // begins the report on the failed tests
}

var (
	vitest = textFormat{
		passed:     regexp.MustCompile(`^\s*Tests\s.*?(\d+) passed`),
		failed:     regexp.MustCompile(`^\s*Tests\s.*?(\d+) failed`),
		skipped:    regexp.MustCompile(`^\s*Tests\s.*?(\d+) skipped`),
		failedTest: regexp.MustCompile(`^\s*FAIL\s+(.+)$`),
		details:    regexp.MustCompile(`Failed (Tests|Suites)`),
	}
	nodeTest = textFormat{
		passed:      regexp.MustCompile(`^\S+ pass (\d+)$`),
		failed:      regexp.MustCompile(`^\S+ fail (\d+)$`),
		skipped:     regexp.MustCompile(`^\S+ skipped (\d+)$`),
		skippedTest: regexp.MustCompile(`^\s*﹣ (.+?) \(\d.*?\) # (.+)$`),
		failedTest:  regexp.MustCompile(`^\s*✖ (.+) \(\d.*\)$`),
		details:     regexp.MustCompile(`^✖ failing tests:`),
	}
	unittest = textFormat{
		all:         regexp.MustCompile(`^Ran (\d+) tests? in`),
		skipped:     regexp.MustCompile(`^(?:OK|FAILED) \(.*?skipped=(\d+)`),
		skippedTest: regexp.MustCompile(`^(\S+ \(\S+?\)).* \.\.\. skipped '(.+)'$`),
		failedTest:  regexp.MustCompile(`^(?:FAIL|ERROR): (.+)$`),
		details:     regexp.MustCompile(`^={20,}`),
	}
)

// textParser parses the output of a runner with a textFormat.
type textParser struct {
	format                       textFormat
	passed, failed, skipped, all int
	skips                        []skip
	failures                     []string
	details                      strings.Builder
	inDetails                    bool
}

func newText(f textFormat) func(io.Writer) parser {
	return func(io.Writer) parser { return &textParser{format: f} }
}

func (t *textParser) line(text string) {
	number := func(r *regexp.Regexp, to *int) {
		if r == nil {
			return
		}
		if found := r.FindStringSubmatch(text); found != nil {
			*to, _ = strconv.Atoi(found[1])
		}
	}
	number(t.format.passed, &t.passed)
	number(t.format.failed, &t.failed)
	number(t.format.skipped, &t.skipped)
	number(t.format.all, &t.all)
	if r := t.format.skippedTest; r != nil {
		if found := r.FindStringSubmatch(text); found != nil {
			t.skips = append(t.skips, skip{found[1], found[2]})
		}
	}
	if found := t.format.failedTest.FindStringSubmatch(text); found != nil {
		t.failures = append(t.failures, found[1])
	}
	t.inDetails = t.inDetails || t.format.details.MatchString(text)
	if t.inDetails {
		t.details.WriteString(text + "\n")
	}
}

// result returns each failed test once. The first has the report on all of
// them.
func (t *textParser) result() result {
	r := result{passed: t.passed, skipped: t.skips}
	for len(r.skipped) < t.skipped {
		r.skipped = append(r.skipped, skip{"a test", "no reason given"})
	}
	seen := map[string]bool{}
	for _, name := range t.failures {
		if !seen[name] && (t.format.failed == nil || len(r.failed) < t.failed) {
			seen[name] = true
			r.failed = append(r.failed, failure{test: name})
		}
	}
	for len(r.failed) < t.failed {
		r.failed = append(r.failed, failure{test: "a test"})
	}
	if len(r.failed) > 0 {
		r.failed[0].output = t.details.String()
	}
	if t.all > 0 {
		r.passed = t.all - len(r.failed) - len(r.skipped)
	}
	return r
}
