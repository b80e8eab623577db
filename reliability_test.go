package junctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReliabilityNamesItsTests checks that every test named in
// docs/reliability.md exists in the package that is named before it.
func TestReliabilityNamesItsTests(t *testing.T) {
	defined := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "internal/")
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			defined[pkg+" "+string(m[1])] = true
		}
		if rows := regexp.MustCompile(`row\("([^"]+)"`).FindAllSubmatch(text, -1); rows != nil {
			for _, m := range rows {
				defined[pkg+" row "+strings.ReplaceAll(string(m[1]), " ", "_")] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| Fault") || strings.HasPrefix(line, "| Case") {
			continue
		}
		cells := strings.Split(line, "|")
		pkg, named := "", 0
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[len(cells)-2], -1) {
			name, row, _ := strings.Cut(m[1], "/rows/")
			switch {
			case !strings.HasPrefix(name, "Test"):
				pkg = name
			case !defined[pkg+" "+name], row != "" && !defined[pkg+" row "+row]:
				t.Errorf("docs/reliability.md names %s in %s, which does not exist", m[1], pkg)
			default:
				named++
			}
		}
		found += named
		if named == 0 {
			t.Errorf("docs/reliability.md: no test in %q", strings.TrimSpace(line))
		}
	}
	if found < 30 {
		t.Errorf("%d tests are named", found)
	}
}
