// Command bench measures the cost of the gateway as ratios to a direct
// connection and to a bare reverse proxy in the same run, because machines
// differ and may be busy.
//
// It starts every part as a separate process (a server, a reverse proxy, the
// real junctor binary), so that the CPU time of each can be measured. All
// traffic stays on loopback and every loop is bounded.
//
// It is a separate module, so that the product does not depend on what it is
// compared to; run it with go -C bench run .
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	role := flag.String("role", "", "what this process is; empty for the benchmark itself")
	target := flag.String("target", "", "the address behind the proxy")
	tools := flag.Int("tools", 10, "how many tools the server offers")
	calls := flag.Int("calls", 3000, "calls per measurement")
	binary := flag.String("junctor", "", "the junctor binary; built when empty")
	before := flag.String("before", "", "another junctor binary that takes part in price, to compare with")
	match := flag.String("scenario", "", "a part of the title of the price scenarios to run; empty for all")
	only := flag.String("only", "", "price, calls, memory, start, nodes or forwarded; empty for all")
	rounds := flag.Int("rounds", 7, "rounds of price, of which the median counts")
	profile := flag.String("profile", "", "an existing folder for CPU profiles of the gateway, taken in rounds of their own (price alone)")
	flag.Parse()
	var err error
	switch *role {
	case "server":
		err = serveHTTP(*tools)
	case "stdio":
		err = serveStdio(*tools)
	case "chatty":
		for i := range chattyLines {
			fmt.Fprintf(os.Stderr, "2026-11-15T12:00:00Z INFO worker %d handled request /v1/items/%d in 12ms token=abcdef0123456789\n", i, i)
		}
		err = serveStdio(*tools)
	case "hang":
		time.Sleep(10 * time.Minute)
	case "proxy":
		err = serveProxy(*target)
	default:
		err = measure(&bench{junctor: *binary, before: *before, match: *match, calls: *calls, rounds: max(*rounds, 1), profile: *profile}, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	ctx      context.Context
	self     string // this program
	junctor  string // the program under test
	before   string // another version of junctor to compare; empty for none
	match    string // part of the titles of the price scenarios to run
	dir      string // for temporary files
	calls    int
	rounds   int    // of the price scenarios
	profile  string // the folder for profiles; empty for none
	children []*process
}

func measure(b *bench, only string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "junctor-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b.ctx, b.self, b.dir = ctx, self, dir
	for _, path := range []*string{&b.profile, &b.junctor, &b.before} { // processes start in another folder
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if b.junctor == "" {
		b.junctor = filepath.Join(dir, "junctor")
		build := exec.CommandContext(ctx, "go", "-C", "..", "build", "-trimpath", "-tags", b.tags(), "-ldflags", "-s -w", "-o", b.junctor, "./cmd/junctor")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build junctor: %w", err)
		}
	}
	defer b.stop()
	for _, part := range []struct {
		name string
		run  func() error
	}{{"price", b.measurePrice}, {"calls", b.measureCalls}, {"memory", b.measureMemory}, {"start", b.measureStart}, {"nodes", b.measureNodes}, {"forwarded", b.measureForwarded}} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		b.stop()
	}
	return nil
}

// tags returns the build tags for the gateway.
func (b *bench) tags() string {
	if b.profile != "" {
		return "profile"
	}
	return ""
}

// table prints rows in columns, as in docs/performance.md.
func table(title string, head []string, rows [][]string) {
	fmt.Printf("\n%s\n\n", title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	w.Flush()
}
