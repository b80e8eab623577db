package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tailscale/hujson"

	"junctor/docs"
	"junctor/internal/config"
)

// block is a fenced block of a document.
type block struct {
	file string
	line int
	info []string // the words after the fence: a language, and run or serve
	text string
}

func (b block) at() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

func (b block) is(words ...string) bool {
	return len(b.info) > 0 && slices.Contains(words, b.info[0])
}

func documents(t *testing.T) []string {
	t.Helper()
	files := []string{"../README.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/decisions/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func blocks(t *testing.T) []block {
	t.Helper()
	var out []block
	for _, file := range documents(t) {
		var b *block
		n := 0
		for line := range strings.Lines(read(t, file)) {
			n++
			trimmed := strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(trimmed, "```") && b == nil:
				b = &block{file: strings.TrimPrefix(file, "../"), line: n, info: strings.Fields(strings.TrimPrefix(trimmed, "```"))}
			case strings.HasPrefix(trimmed, "```"):
				out = append(out, *b)
				b = nil
			case b != nil:
				b.text += line
			}
		}
		if b != nil {
			t.Errorf("%s: a block has no end", b.at())
		}
	}
	return out
}

// TestExamplesInDocs parses every JSON example as JSON, and as a configuration
// if it looks like one.
func TestExamplesInDocs(t *testing.T) {
	t.Parallel()
	configurations := 0
	for _, b := range blocks(t) {
		if !b.is("json", "jsonc", "json5") {
			continue
		}
		if text := strings.TrimSpace(b.text); strings.HasPrefix(text, `"`) { // servers without the enclosing object
			b.text = `{"mcpServers": {` + b.text + `}}`
		}
		plain, err := hujson.Standardize([]byte(b.text))
		if err != nil { // several values, one after the other
			plain = regexp.MustCompile(`(?m)^\s*//.*$`).ReplaceAll([]byte(b.text), nil)
		}
		dec := json.NewDecoder(bytes.NewReader(plain))
		for {
			var v any
			err := dec.Decode(&v)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", b.at(), err)
				break
			}
			if top, ok := v.(map[string]any); ok && isConfiguration(top) && !b.is("json5") {
				configurations++
				raw, err := json.Marshal(top)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := config.Parse(b.at(), raw, config.Options{LookupEnv: anything}); err != nil {
					t.Errorf("%s: %v", b.at(), err)
				}
			}
		}
	}
	if configurations < 5 {
		t.Errorf("only %d configurations were found; the test looks past them", configurations)
	}
}

// anything is an environment in which every variable is set.
func anything(name string) (string, bool) {
	switch {
	case strings.HasPrefix(name, "JUNCTOR_"), strings.HasPrefix(name, "MCP_"), name == "PORT", name == "LOG_LEVEL", strings.HasSuffix(name, "_MS"), strings.HasPrefix(name, "MAX_"):
		return "", false // these override settings
	case strings.Contains(name, "DATABASE"):
		return "postgres://user:password@db.example/junctor", true
	case strings.Contains(name, "URL"), strings.Contains(name, "BASE"):
		return "https://example.com", true
	}
	return "7", true
}

// isConfiguration distinguishes Junctor's file from responses of its APIs and
// from files of other programs.
func isConfiguration(top map[string]any) bool {
	known := map[string]bool{}
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if json.Unmarshal(docs.ConfigSchema, &schema) != nil {
		return false
	}
	for key := range schema.Properties {
		known[key] = true
	}
	if _, ok := top["servers"].([]any); ok { // a response that lists servers
		return false
	}
	for key := range top {
		if !known[key] {
			return false
		}
	}
	return len(top) > 0
}

// commandLine matches the commands of Junctor in a shell script.
var commandLine = regexp.MustCompile(`(?m)(?:^|[|;&(]\s*|\w=\S+ )(?:\./)?(?:bin/)?junctor(?:\s+([^|;&>#\n]*))?`)

// TestCommandsInDocs checks that every shell block is valid shell syntax, and
// that the commands and flags of Junctor in it exist.
func TestCommandsInDocs(t *testing.T) {
	t.Parallel()
	help := helps(t)
	checked := 0
	for _, b := range blocks(t) {
		if !b.is("sh", "bash", "console", "shell") {
			continue
		}
		cmd := exec.Command("sh", "-n")
		cmd.Stdin = strings.NewReader(b.text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %s", b.at(), out)
		}
		for _, m := range commandLine.FindAllStringSubmatch(b.text, -1) {
			checked++
			if err := checkCommand(help, strings.Fields(m[1])); err != nil {
				t.Errorf("%s: junctor %s: %v", b.at(), m[1], err)
			}
		}
	}
	inline := regexp.MustCompile("`junctor( [^`]+)`")
	for _, file := range documents(t) {
		for _, m := range inline.FindAllStringSubmatch(read(t, file), -1) {
			checked++
			if err := checkCommand(help, strings.Fields(m[1])); err != nil {
				t.Errorf("%s: `junctor%s`: %v", file, m[1], err)
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d commands were found; the test looks past them", checked)
	}
}

// helps returns a function that returns the help of a command and caches it.
func helps(t *testing.T) func(path ...string) (string, bool) {
	var mu sync.Mutex
	known := map[string]string{}
	return func(path ...string) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		key := strings.Join(path, " ")
		text, ok := known[key]
		if !ok {
			out, err := exec.Command(junctor(t), append(slices.Clone(path), "--help")...).CombinedOutput()
			if err == nil {
				text = string(out)
			}
			known[key] = text
		}
		return text, strings.Contains(text, "junctor "+key) || key == ""
	}
}

// checkCommand follows the words of a command line as long as they are
// commands, and looks up flags in the help of the last one.
func checkCommand(help func(...string) (string, bool), words []string) error {
	var path []string
	arguments := false // all further words are arguments
	for _, w := range words {
		switch {
		case w == "--":
			return nil
		case strings.HasPrefix(w, "-"):
			text, _ := help(path...)
			flag, _, _ := strings.Cut(w, "=")
			flag = strings.TrimRight(flag, ",.)`'\"")
			if !regexp.MustCompile(`(?m)^\s.*` + regexp.QuoteMeta(flag) + `[ ,\n]`).MatchString(text) {
				return fmt.Errorf("there is no flag %s", flag)
			}
		case arguments:
		case !isWord.MatchString(w) || len(path) == 2:
			arguments = true
		default:
			if _, ok := help(append(slices.Clone(path), w)...); ok {
				path = append(path, w)
			} else if len(path) == 0 {
				return fmt.Errorf("there is no command %s", w)
			} else {
				arguments = true
			}
		}
	}
	return nil
}

var isWord = regexp.MustCompile(`^[a-z]+$`)

// TestRunnableDocs runs the blocks that are marked as runnable: those with
// "run" in their own home folder, those with "serve" with a running gateway.
func TestRunnableDocs(t *testing.T) {
	t.Parallel()
	byFile := map[string][]block{}
	for _, b := range blocks(t) {
		if b.is("sh") && len(b.info) > 1 {
			byFile[b.file] = append(byFile[b.file], b)
		}
	}
	if len(byFile) < 3 {
		t.Errorf("only %d documents have something to run", len(byFile))
	}
	for file, list := range byFile {
		t.Run(filepath.Base(file), func(t *testing.T) {
			h := newHome(t, "{}")
			if err := os.Remove(h.config); err != nil { // a new user has no configuration
				t.Fatal(err)
			}
			bin := filepath.Join(h.dir, "bin")
			if err := os.MkdirAll(bin, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(junctor(t), filepath.Join(bin, "junctor")); err != nil {
				t.Fatal(err)
			}
			path := "PATH=" + bin + ":" + os.Getenv("PATH")
			var g *gateway
			for _, b := range list {
				text := b.text
				if b.info[1] == "serve" {
					if g == nil {
						h.write("junctor.json", "{}")
						g = h.serve().ready("junctor")
					}
					text = strings.ReplaceAll(text, "http://127.0.0.1:8787", g.url)
				}
				script := "set -eu\ncurl() { command curl --fail-with-body --max-time 60 \"$@\"; }\n" + text
				out, errs, err := h.run(strings.NewReader(script), []string{path}, "sh", "-s")
				if err != nil {
					t.Errorf("%s: %v\n%s\n%s", b.at(), err, out, errs)
				}
			}
		})
	}
}

// TestDashboardUsesExistingMetrics checks that the metrics on the Grafana
// dashboard exist.
func TestDashboardUsesExistingMetrics(t *testing.T) {
	t.Parallel()
	raw := read(t, "../docs/grafana/junctor.json")
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(raw), &board); err != nil || len(board.Panels) < 10 {
		t.Fatalf("%d panels, %v", len(board.Panels), err)
	}
	source := read(t, "../internal/telemetry/metrics.go")
	name := regexp.MustCompile(`junctor_[a-z_]+`)
	for _, text := range append([]string{read(t, "../docs/operations.md")}, raw) {
		for _, m := range name.FindAllString(text, -1) {
			short := strings.TrimPrefix(m, "junctor_")
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				short = strings.TrimSuffix(short, suffix)
			}
			if !strings.Contains(source, `"`+short+`"`) {
				t.Errorf("there is no figure %s", m)
			}
		}
	}
}
