//go:build unix

package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/store"
)

func TestCheckFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := store.CheckFolder(dir); err != nil {
		t.Errorf("a folder yet to be made: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o777: false, 0o770: false, 0o702: false} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := store.CheckFolder(dir); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "chmod 700") {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := store.CheckFolder(dir); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("another's folder: %v", err)
	}
}
