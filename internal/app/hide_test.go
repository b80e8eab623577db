package app

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestServersDoNotSeeTheDataFolder checks that a server's program cannot list
// the folder with the store and its key.
func TestServersDoNotSeeTheDataFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("folders are hidden on Linux only")
	}
	home := t.TempDir()
	data := filepath.Join(home, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	// The configuration does not contain the name of the folder.
	r := start(t, fmt.Sprintf(`{"log":{"level":"debug"},"mcpServers":{"spy":{"command":"/bin/sh","env":{"HOME":%q},
		"args":["-c","ls -A \"$HOME\"/dat? >&2; echo that is all >&2; exec cat >/dev/null"]}}}`, home), data)
	eventually(t, "the program's list", func() bool { return strings.Contains(r.log.String(), "that is all") })
	log := r.log.String()
	if strings.Contains(log, "the data folder is visible") {
		if !strings.Contains(log, "the system does not allow") {
			t.Errorf("the folder is visible for another reason than the system:\n%s", log)
		}
		t.Skip("this system lets no program have mounts of its own")
	}
	if strings.Contains(log, `"junctor.db"`) || strings.Contains(log, "line=junctor.db") {
		t.Errorf("the program sees the store:\n%s", log)
	}
}
