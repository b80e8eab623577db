package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A gateway that was started without a configuration is the one that commands
// talk to after the first server was added, which made the file.
func TestSocketStaysWhenTheFirstFileIsWritten(t *testing.T) {
	dir := t.TempDir()
	c := &cli{world: &world{
		lookup:  func(string) (string, bool) { return "", false },
		workDir: dir, home: dir, userDir: filepath.Join(dir, "config"), dataDir: filepath.Join(dir, "data"),
	}}
	socket := func() string {
		cfg, err := c.load(c.options(hereToo))
		if err != nil {
			t.Fatal(err)
		}
		return c.socket(cfg)
	}
	before := socket()
	file := filepath.Join(c.userDir, "junctor", "junctor.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := socket(); before == "" || after != before {
		t.Errorf("the socket is %q before and %q after", before, after)
	}
}
