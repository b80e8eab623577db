// Package doctor finds problems and how to fix them: of a whole setup
// ([Examine]), and of one MCP server, for its author ([Test]).
//
// Findings are data that the caller formats. The package examines its
// arguments, and the machine through [Probes]. It changes nothing, and calls
// tools that are not marked read-only only if the caller names them.
package doctor

import (
	"fmt"
	"io"
	"strings"
	"time"

	"junctor/internal/terminal"
)

// Severity is the severity of a finding.
type Severity string

// The severities, in ascending order.
const (
	OK      Severity = "ok"
	Info    Severity = "info"    // worth knowing
	Warning Severity = "warning" // works, but should be fixed
	Problem Severity = "error"   // does not work
)

// Finding is the result of one check.
type Finding struct {
	Severity Severity `json:"severity"`
	Area     string   `json:"area"`              // configuration, runtimes, servers, tools, providers, safety, network, files, clock, store …
	Subject  string   `json:"subject,omitempty"` // the server, tool or file
	What     string   `json:"what"`
	Do       string   `json:"do,omitempty"` // what to do about it
	TookMs   float64  `json:"tookMs,omitempty"`
	Details  []string `json:"details,omitempty"`
}

// Report has all findings in the order of the checks.
type Report struct {
	Findings []Finding `json:"findings"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`

	progress  func(area string)
	explained map[string]bool // servers for which it is already reported why they are down
}

// Add appends a finding.
func (r *Report) Add(f Finding) {
	switch f.Severity {
	case Problem:
		r.Errors++
	case Warning:
		r.Warnings++
	}
	r.Findings = append(r.Findings, f)
}

func (r *Report) begin(area string) {
	if r.progress != nil {
		r.progress(area)
	}
}

// OK reports whether there are no errors and, with strict, no warnings.
func (r *Report) OK(strict bool) bool { return r.Errors == 0 && (!strict || r.Warnings == 0) }

// maxDetails bounds the details of a finding that Write prints.
const maxDetails = 8

// Write writes the report as text. paint colours a text by severity; nil leaves
// it uncoloured.
func (r *Report) Write(w io.Writer, paint func(Severity, string) string) {
	if paint == nil {
		paint = func(_ Severity, s string) string { return s }
	}
	marks := map[Severity]string{OK: "✓", Info: "·", Warning: "!", Problem: "✗"}
	area := ""
	for _, f := range r.Findings {
		if f.Area != area {
			area = f.Area
			fmt.Fprintf(w, "%s\n", strings.ToUpper(area[:1])+area[1:])
		}
		text := f.What
		if f.Subject != "" {
			text = f.Subject + ": " + text
		}
		if f.TookMs > 0 {
			text += fmt.Sprintf(" (%s)", time.Duration(f.TookMs*float64(time.Millisecond)).Round(100*time.Microsecond))
		}
		fmt.Fprintf(w, "  %s %s\n", paint(f.Severity, marks[f.Severity]), terminal.OneLine(text))
		for i, d := range f.Details {
			if i == maxDetails {
				fmt.Fprintf(w, "      and %d more\n", len(f.Details)-i)
				break
			}
			fmt.Fprintf(w, "      %s\n", terminal.OneLine(d))
		}
		if f.Do != "" {
			fmt.Fprintf(w, "    → %s\n", terminal.OneLine(f.Do))
		}
	}
	fmt.Fprintf(w, "\n%s\n", r.summary(paint))
}

func (r *Report) summary(paint func(Severity, string) string) string {
	switch {
	case r.Errors > 0:
		return paint(Problem, fmt.Sprintf("%s, %s", terminal.Count(r.Errors, "problem"), terminal.Count(r.Warnings, "warning")))
	case r.Warnings > 0:
		return paint(Warning, fmt.Sprintf("No problems, %s", terminal.Count(r.Warnings, "warning")))
	}
	return paint(OK, "No problems found.")
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
