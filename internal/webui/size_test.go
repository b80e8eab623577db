package webui

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPageSize bounds the compressed size of what the browser loads for the
// first view, and of each part that is loaded on demand.
func TestPageSize(t *testing.T) {
	const firstView, part = 175 << 10, 150 << 10
	h := New()
	index, err := fs.ReadFile(h.files, "index.html")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the page is not built; run make page")
		}
		t.Skip("the page is not built; run make page")
	}
	size := func(path string) int { return get(h, "GET", path, "gzip").Body.Len() }
	first, total := map[string]bool{}, size("/")
	for _, m := range regexp.MustCompile(`(?:src|href)="(/[^"]+\.(?:js|css|svg))"`).FindAllStringSubmatch(string(index), -1) {
		first[strings.TrimPrefix(m[1], "/")] = true
		total += size(m[1])
	}
	if len(first) < 4 || total > firstView {
		t.Errorf("the first view has %d files with %d bytes, want at most %d; load parts of it on demand", len(first), total, firstView)
	}
	err = fs.WalkDir(h.files, "assets", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !first[path] {
			if n := size("/" + path); n > part {
				t.Errorf("%s has %d bytes, want at most %d", path, n, part)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("first view: %d bytes", total)
}
