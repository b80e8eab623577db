package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLockIsExclusive: one handle at a time, until it is closed.
func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Hold(first); err != nil {
		t.Fatal(err)
	}
	if err := Hold(second); !errors.Is(err, ErrHeld) {
		t.Errorf("the second holds it too: %v", err)
	}
	first.Close()
	if err := Hold(second); err != nil {
		t.Errorf("after the first has let go: %v", err)
	}
	if err := Hold(first); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a closed file: %v", err)
	}
}
