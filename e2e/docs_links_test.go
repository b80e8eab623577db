package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLinksInDocsResolve follows the links from one document to another.
func TestLinksInDocsResolve(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	punctuation := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	known := map[string]map[string]bool{} // by file
	anchors := func(file string) map[string]bool {
		if known[file] != nil {
			return known[file]
		}
		out := map[string]bool{}
		for _, m := range heading.FindAllStringSubmatch(read(t, file), -1) {
			slug := strings.ToLower(strings.TrimSpace(m[1]))
			slug = punctuation.ReplaceAllString(slug, "")
			out[strings.ReplaceAll(slug, " ", "-")] = true
		}
		known[file] = out
		return out
	}
	for _, file := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				if os.Getenv("CI") == "true" {
					t.Errorf("%s links to %s, which is not there", file, m[1])
				} else {
					t.Logf("%s links to %s, which is not there yet", file, m[1])
				}
				continue
			}
			if anchor != "" && strings.HasSuffix(target, ".md") && !anchors(target)[anchor] {
				t.Errorf("%s links to %s, which has no such heading", file, m[1])
			}
		}
	}
}
