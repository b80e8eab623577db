// Command suites runs the test suites and prints a summary at the end.
//
//	go run ./scripts/suites [-short] suite...
//
// While it runs it prints a line for each finished package. At the end it
// prints the output of the tests that failed, then what was skipped and why,
// then a table of the suites. The complete output of a suite is in
// .cache/test/<suite>.log; logs of gateways and screenshots of failed tests are
// in .cache/failed.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// suite is a command whose output reports the results of tests.
type suite struct {
	name    string
	dir     string
	command []string
	env     []string
	parser  func(progress io.Writer) parser
}

// parser reads the output of a suite line by line.
type parser interface {
	line(text string)
	result() result
}

// result is the outcome of a suite.
type result struct {
	passed  int
	failed  []failure
	skipped []skip
}

type failure struct{ test, output string }

type skip struct{ test, reason string }

// raceDetector instruments everything except SQLite, which is translated from C
// and whose memory the detector ignores, and the machine code generator for
// WebAssembly: they take ten times as long with instrumentation. Neither
// instantiates generic functions of other packages, of which the linker might
// use the copy without instrumentation.
var raceDetector = []string{"-race",
	"-gcflags=modernc.org/sqlite/lib=-race=false",
	"-gcflags=github.com/tetratelabs/wazero/internal/engine/wazevo/backend/...=-race=false"}

// suites returns the suites in the order in which they run. Tests often wait
// for processes, so more tests and packages run concurrently than there are
// cores. With short the Go tests run without the race detector, and without
// tests that need other programs.
func suites(short bool) []suite {
	race, env, atOnce := raceDetector, []string{"CGO_ENABLED=1"}, 2*runtime.NumCPU() // the detector requires cgo
	if short {
		// Most of the time is spent in the linker, a quarter of that for
		// garbage collection.
		race, env, atOnce = []string{"-short"}, []string{"GOGC=400"}, 3*runtime.NumCPU()
	}
	goTest := func(flags, packages []string) []string {
		return slices.Concat([]string{"go", "test", "-json", "-vet=off", "-timeout", "20m", "-parallel", "4", "-p", fmt.Sprint(atOnce)}, flags, packages)
	}
	return []suite{
		{name: "go", command: goTest(race, nil), env: env, parser: newGoTest}, // the packages are appended later
		{name: "quality", command: goTest(nil, []string{"./internal/search", "./internal/provider", "./internal/schema", "./internal/agentify"}), parser: newGoTest},
		{name: "e2e", command: goTest(race, []string{"./e2e"}), env: env, parser: newGoTest},
		{name: "web", dir: "web", command: []string{"npm", "test", "--silent"}, parser: newText(vitest)},
		{name: "python", dir: "clients/python", command: []string{"python3", "-m", "unittest", "discover", "-v", "-s", "tests"}, parser: newText(unittest)},
		{name: "typescript", dir: "clients/typescript", command: []string{"npm", "test", "--silent"}, parser: newText(nodeTest)},
		{name: "bench", dir: "bench", command: goTest(nil, []string{"./..."}), parser: newGoTest},
		{name: "soak", command: goTest(slices.Concat(raceDetector, []string{"-count=1", "-p=1", "-parallel=1", "-run", "^Test(Nodes|Killed|ManySessions|Soak)"}), []string{"./internal/sqlite", "./internal/postgres", "./internal/chat", "./e2e"}), env: append(env, "JUNCTOR_SOAK=1"), parser: newGoTest},
	}
}

func main() {
	short := flag.Bool("short", false, "without the race detector, browsers, npm and PostgreSQL")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, os.Stdout, *short, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, w io.Writer, short bool, names []string) (int, error) {
	all := suites(short)
	if len(names) == 0 {
		return 2, errors.New("no suite is named")
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(s suite) bool { return s.name == name }) {
			return 2, fmt.Errorf("no suite %q", name)
		}
	}
	logs, failed := filepath.Join(".cache", "test"), filepath.Join(".cache", "failed")
	if err := errors.Join(os.RemoveAll(logs), os.RemoveAll(failed), os.MkdirAll(logs, 0o755)); err != nil {
		return 2, err
	}
	var outcomes []outcome
	for _, s := range all {
		if !slices.Contains(names, s.name) {
			continue
		}
		if s.name == "go" {
			packages, err := productPackages(ctx, short)
			if err != nil {
				return 2, err
			}
			s.command = append(s.command, packages...)
		}
		start := time.Now()
		r, err := execute(ctx, w, s, filepath.Join(logs, s.name+".log"))
		if err != nil {
			return 2, err
		}
		outcomes = append(outcomes, outcome{suite: s.name, result: r, took: time.Since(start)})
		if ctx.Err() != nil {
			break
		}
	}
	summarize(w, outcomes)
	for _, o := range outcomes {
		if len(o.failed) > 0 {
			return 1, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return 1, err
	}
	return 0, nil
}

// productPackages lists the packages of this module that have tests, except for
// e2e and, with short, for those that only test PostgreSQL.
func productPackages(ctx context.Context, short bool) ([]string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	packages := slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool {
		return p == "junctor/e2e" || short && strings.HasPrefix(p, "junctor/internal/postgres")
	})
	slices.SortStableFunc(packages, func(a, b string) int { return rank(a) - rank(b) })
	return packages, nil
}

// slowest are the packages that start first, so that none of them runs alone at
// the end.
var slowest = []string{"cmd/junctor", "internal/postgres", "internal/chat", "internal/sqlite", "internal/upstream", "internal/app", "internal/nodes", "packaging", "internal/doctor"}

func rank(pkg string) int {
	if i := slices.Index(slowest, short(pkg)); i >= 0 {
		return i
	}
	return len(slowest)
}

// noExitDelay reduces the time that the race detector waits for reports at the
// exit of a process from one second, for each test binary and each program that
// it starts.
const noExitDelay = "GORACE=atexit_sleep_ms=10"

// execute runs a suite. A command that fails without naming a failed test,
// such as a compiler, counts as a failed test with all of its output.
func execute(ctx context.Context, w io.Writer, s suite, logFile string) (result, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return result{}, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), append(s.env, "NO_COLOR=1", "FORCE_COLOR=0", noExitDelay)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	p := s.parser(w)
	read := make(chan error, 1)
	go func() {
		lines := bufio.NewReader(reader)
		for {
			text, err := lines.ReadString('\n')
			if text != "" {
				_, _ = log.WriteString(text)
				p.line(strings.TrimSuffix(text, "\n"))
			}
			if err != nil {
				read <- nil
				return
			}
		}
	}()
	err = cmd.Run()
	_ = writer.Close()
	<-read
	r := p.result()
	if err != nil && len(r.failed) == 0 {
		out, _ := os.ReadFile(logFile)
		r.failed = append(r.failed, failure{test: strings.Join(s.command, " "), output: fmt.Sprintf("%s\n%v", tail(string(out), 200), err)})
	}
	return r, nil
}

// tail returns the last n lines.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
