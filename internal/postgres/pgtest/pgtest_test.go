package pgtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestServer checks that a server keeps its data when it is restarted, and
// leaves nothing behind when it is closed.
func TestServer(t *testing.T) {
	s, err := Start()
	SkipOrFail(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	defer cancel()
	name, err := s.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(ctx, name, "CREATE TABLE x (n int)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(ctx, name, "SELECT 1"); err == nil {
		t.Error("a stopped server answers")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(ctx, name, "INSERT INTO x VALUES (1)"); err != nil {
		t.Errorf("after a start: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	s.dir = filepath.Join(t.TempDir(), "gone")
	if err := s.Start(); err == nil {
		t.Error("a server without data started")
	}
}
