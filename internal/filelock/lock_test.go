package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLockIsExclusive checks that one handle at a time holds the lock, until it
// is closed.
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

// TestFolderIsHeldByOne checks that HoldFolder waits until the lock is
// released, but not for ever.
func TestFolderIsHeldByOne(t *testing.T) {
	dir := t.TempDir()
	first, err := HoldFolder(dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := HoldFolder(dir, 0); !errors.Is(err, ErrHeld) {
		t.Errorf("two hold it: %v", err)
	}
	done := make(chan error)
	go func() {
		f, err := HoldFolder(dir, time.Minute)
		done <- errors.Join(err, f.Close())
	}()
	first.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}
