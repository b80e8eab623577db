package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// goTest reads the events of go test -json.
type goTest struct {
	progress io.Writer
	packages map[string]*goPackage
	builds   map[string]*strings.Builder // output of the compiler, by package
	res      result
}

type goPackage struct {
	tests  map[string]*goTestRun
	output strings.Builder // output that belongs to no test
	passed int
	failed bool // a test of the package failed
}

type goTestRun struct {
	output strings.Builder
	parent bool // it has subtests, which are counted instead
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
	Elapsed                                                float64
}

func newGoTest(progress io.Writer) parser {
	return &goTest{progress: progress, packages: map[string]*goPackage{}, builds: map[string]*strings.Builder{}}
}

func (g *goTest) result() result { return g.res }

func (g *goTest) line(text string) {
	var e event
	if json.Unmarshal([]byte(text), &e) != nil || e.Action == "" {
		fmt.Fprintln(g.progress, text) // output of the go command itself
		return
	}
	switch {
	case e.Action == "build-output":
		if g.builds[e.ImportPath] == nil {
			g.builds[e.ImportPath] = &strings.Builder{}
		}
		g.builds[e.ImportPath].WriteString(e.Output)
	case e.Package == "":
	case e.Test == "":
		g.packageEvent(e)
	default:
		g.testEvent(e)
	}
}

func (g *goTest) pkg(name string) *goPackage {
	p := g.packages[name]
	if p == nil {
		p = &goPackage{tests: map[string]*goTestRun{}}
		g.packages[name] = p
	}
	return p
}

func (p *goPackage) test(name string) *goTestRun {
	t := p.tests[name]
	if t == nil {
		t = &goTestRun{}
		p.tests[name] = t
	}
	return t
}

func (g *goTest) testEvent(e event) {
	p := g.pkg(e.Package)
	t := p.test(e.Test)
	switch e.Action {
	case "run":
		if i := strings.LastIndexByte(e.Test, '/'); i > 0 {
			p.test(e.Test[:i]).parent = true
		}
		return
	case "output":
		if !ceremony.MatchString(e.Output) {
			t.output.WriteString(e.Output)
		}
		return
	case "pass":
		if !t.parent {
			p.passed++
			g.res.passed++
		}
	case "fail":
		p.failed = true
		// A parent without output of its own failed because a subtest did.
		if !t.parent || strings.TrimSpace(t.output.String()) != "" {
			g.fail(e.Package, e.Test, t.output.String())
		}
	case "skip":
		g.res.skipped = append(g.res.skipped, skip{short(e.Package) + " " + e.Test, skipReason(t.output.String())})
	default:
		return
	}
	delete(p.tests, e.Test)
}

func (g *goTest) packageEvent(e event) {
	p := g.pkg(e.Package)
	switch e.Action {
	case "output":
		p.output.WriteString(e.Output)
	case "pass":
		cached := ""
		if strings.Contains(p.output.String(), "\t(cached)") {
			cached = ", cached"
		}
		fmt.Fprintf(g.progress, "ok    %-40s %6.1f s  %d passed%s\n", short(e.Package), e.Elapsed, p.passed, cached)
	case "fail":
		fmt.Fprintf(g.progress, "FAIL  %-40s %6.1f s\n", short(e.Package), e.Elapsed)
		if b := g.builds[e.FailedBuild]; e.FailedBuild != "" && b != nil {
			g.fail(e.Package, "does not build", b.String())
			return
		}
		// A crash or a timeout terminated the process during a test.
		unfinished := false
		for name, t := range p.tests {
			if !t.parent {
				g.fail(e.Package, name+" (unfinished)", t.output.String())
				unfinished = true
			}
		}
		if !p.failed && !unfinished {
			g.fail(e.Package, "", p.output.String())
		}
	}
}

func (g *goTest) fail(pkg, test, output string) {
	g.res.failed = append(g.res.failed, failure{strings.TrimSpace(short(pkg) + " " + test), output})
}

func short(pkg string) string { return strings.TrimPrefix(pkg, "junctor/") }

var (
	// ceremony matches lines that only report the start or end of a test.
	ceremony = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME)|--- (PASS|SKIP|FAIL):)`)
	// location matches the location of a skip: "    file_test.go:12: reason"
	location = regexp.MustCompile(`^\s*[\w./-]+\.go:\d+: `)
)

func skipReason(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if reason := location.ReplaceAllString(lines[len(lines)-1], ""); reason != "" {
		return strings.TrimSpace(reason)
	}
	return "no reason given"
}
