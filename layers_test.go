package junctor

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// layer has the layer of every package under internal/. A package may import
// only packages of lower layers, and its own parent; those of one layer never
// import each other. The test fails if a package is missing, so that adding one
// is a decision.
var layer = map[string]int{
	"address":   0,
	"filelock":  0,
	"jsonedit":  0,
	"rawjson":   0,
	"memory":    0,
	"script":    0,
	"setting":   0,
	"terminal":  0,
	"tool":      0,
	"http1":     1,
	"mcp":       1,
	"results":   1,
	"telemetry": 1,

	"child":      2,
	"httperr":    2,
	"httpstream": 2,
	"mcpclient":  2,
	"mcpserver":  2,
	"provider":   2,
	"schema":     2,
	"store":      2,
	"wsconn":     2,

	"apiclient": 3,
	"audit":     3,
	"auth":      3,
	"backup":    3,
	"builtin":   3,
	"catalog":   3,
	"form":      3,
	"llm":       3,
	"mcptrace":  3,
	"nodes":     3,
	"profile":   3,
	"search":    3,
	"secretkey": 3,
	"upstream":  3,
	"waiting":   3,

	"approval":   4,
	"authserver": 4,
	"codemode":   4,
	"executor":   4,
	"guard":      4,
	"httpserver": 4,
	"listing":    4,
	"oauth":      4,
	"openapi":    4,
	"reserved":   4,

	"agentify":    5,
	"attach":      5,
	"broker":      5,
	"chat":        5,
	"conformance": 5,
	"control":     5,
	"discovery":   5,
	"postgres":    5,
	"sqlite":      5,
	"toolsapi":    5,
	"webui":       5,

	"callio":      6,
	"chatclient":  6,
	"config":      6,
	"clients":     7,
	"configshare": 7,
	"doctor":      8,
	"app":         8,
	"launch":      9,
}

func TestImportsPointDown(t *testing.T) {
	err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasSuffix(d.Name(), "test")) {
			return filepath.SkipDir // only used by tests
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "internal/")
		top, _, _ := strings.Cut(pkg, "/")
		from, ok := layer[top]
		if !ok {
			t.Errorf("%s: package %s has no layer; decide on one here and in docs/architecture.md", path, top)
			return nil
		}
		for _, spec := range f.Imports {
			target, _ := strconv.Unquote(spec.Path.Value)
			name, ours := strings.CutPrefix(target, "junctor/internal/")
			if !ours {
				continue
			}
			name, _, _ = strings.Cut(name, "/")
			if name == top {
				continue // a subpackage and its parent
			}
			if to, ok := layer[name]; !ok || to >= from {
				t.Errorf("%s: %s must not import %s", path, pkg, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPackagesHaveComments checks that every package has a comment.
func TestPackagesHaveComments(t *testing.T) {
	documented := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		documented[dir] = documented[dir] || f.Doc != nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no package comment", dir)
		}
	}
}
