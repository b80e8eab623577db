package discovery

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts replays conversations on a byte stream: "> " is a line of
// the client, "< " one of the gateway.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(raw))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(raw) {
				t.Errorf("%s differs; run with -update and look at the difference.\n%s", file, got)
			}
		})
	}
}

// play replays a transcript and returns it with the current responses.
func play(t *testing.T, script string) string {
	github := newTestServer(issueTool, listTool)
	github.words = "Always name the repository as owner/name."
	no := false
	r := newFixture(t, map[string]*testServer{"github": github, "paint": newTestServer(pictureTool, anyTool("refuse"), anyTool("secret")), "broken": nil},
		func(r *fixture, configs *[]upstream.Config) {
			r.catalog = catalog.New([]catalog.ToolRule{{Pattern: []string{"paint:secret"}, Enabled: &no}, {Pattern: []string{"github:*"}, Tags: []string{"vcs"}}}, nil)
			for i, c := range *configs {
				switch c.Name {
				case "github":
					(*configs)[i].Description = "Issues and code on GitHub"
				case "paint":
					(*configs)[i].Description = "Pictures <of> everything & more"
				}
			}
		})
	eventually(t, "the tools are known", func() bool { return r.catalog.Snapshot().Len() == 5 })
	var view View
	for line := range strings.Lines(script) {
		if v, ok := strings.CutPrefix(line, "# view: "); ok {
			mode, server, _ := strings.Cut(strings.TrimSpace(v), " ")
			if mode == "server" {
				mode = ""
			}
			view, _ = ParseView(mode, server)
		}
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(tool.WithCaller(context.Background(), tool.Caller{ID: "key:t", Name: "t"}))
	defer cancel()
	go func() { _ = r.ServeStream(ctx, view, inR, outW) }()
	out := mcp.NewReader(outR, mcp.FramingLines, mcp.Limits{}, nil)
	var b strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "< ") {
			continue
		}
		b.WriteString(line + "\n")
		request, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		if _, err := io.WriteString(inW, request+"\n"); err != nil {
			t.Fatal(err)
		}
		for strings.Contains(request, `"id"`) {
			data, err := out.Next()
			if err != nil {
				t.Fatal(err)
			}
			m, err := mcp.Decode(data, mcp.Limits{})
			if err == nil && m.Method == mcp.MethodToolsChanged {
				continue // from the start, which may still be in progress
			}
			b.WriteString("< " + string(data) + "\n")
			if err == nil && m.IsResponse() {
				break
			}
		}
	}
	return b.String()
}
