//go:build unix

package clients

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Reading does not block on a named pipe.
func TestNamedPipeInPlaceOfFileIsNotRead(t *testing.T) {
	m := machine(t.TempDir())
	path := m.home(".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	cursor, err := Lookup("cursor")
	if err != nil {
		t.Fatal(err)
	}
	if found := Discover(m, cursor); len(found) != 1 || found[0].Err == nil || !strings.Contains(found[0].Err.Error(), "is not a file") {
		t.Errorf("%s", describe(found))
	}
	if _, err := cursor.Connect(m, Connection{Command: "junctor"}); err == nil {
		t.Error("connected to a pipe")
	}
}
