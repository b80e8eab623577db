package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// editAtOnce adds 16 servers to a file concurrently.
func editAtOnce(t *testing.T, o Options, prefix string) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if _, err := Apply(o, Set(fmt.Sprint(prefix, i), json.RawMessage(`{"command":"x"}`))); err != nil {
				t.Errorf("%s%d: %v", prefix, i, err)
			}
		})
	}
	wg.Wait()
}

// hasServers checks that the file has the given number of servers.
func hasServers(t *testing.T, path string, want int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := Entries(path, text)
	if err != nil || len(list) != want {
		t.Errorf("%d servers, want %d: %v", len(list), want, err)
	}
}

// TestEditsAtOnceAreAllMade checks that concurrent edits are all in the file if
// Apply returned no error.
func TestEditsAtOnceAreAllMade(t *testing.T) {
	t.Run("a named file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "junctor.json")
		write(t, file, "{}", 0o600)
		editAtOnce(t, Options{File: file}, "s")
		hasServers(t, file, 16)
	})
	t.Run("a new file", func(t *testing.T) {
		user := t.TempDir()
		editAtOnce(t, Options{UserDir: user}, "s")
		hasServers(t, filepath.Join(user, "junctor", "junctor.json"), 16)
	})
	// The file stays trusted, so that none of the edits is refused.
	t.Run("a file that was found", func(t *testing.T) {
		for name, work := range map[string]string{"elsewhere": t.TempDir(), "where the trust is stored": ""} {
			user := t.TempDir()
			if work == "" {
				work = filepath.Join(user, "junctor")
			}
			file := filepath.Join(work, "junctor.json")
			write(t, file, "{}", 0o600)
			o := Options{WorkDir: work, UserDir: user, Trust: func(TrustRequest) (bool, error) { return true, nil }}
			if _, _, err := Load(o); err != nil {
				t.Fatal(err)
			}
			o.Trust = nil
			editAtOnce(t, o, "s")
			hasServers(t, file, 16)
			if _, _, err := Load(o); err != nil {
				t.Errorf("%s: after the edits: %v", name, err)
			}
		}
	})
	t.Run("a file and a link to it", func(t *testing.T) {
		dir := t.TempDir()
		file, link := filepath.Join(dir, "real", "junctor.json"), filepath.Join(dir, "link.json")
		write(t, file, "{}", 0o600)
		if err := os.Symlink(file, link); err != nil {
			t.Skip("no symbolic links:", err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { editAtOnce(t, Options{File: file}, "a") })
		wg.Go(func() { editAtOnce(t, Options{File: link}, "b") })
		wg.Wait()
		hasServers(t, file, 32)
	})
}

// TestEditsOfSeveralProcesses checks the same for several processes, such as a
// gateway and commands.
func TestEditsOfSeveralProcesses(t *testing.T) {
	const fileVar, nameVar = "JUNCTOR_TEST_EDIT_FILE", "JUNCTOR_TEST_EDIT_NAME"
	if file := os.Getenv(fileVar); file != "" {
		editAtOnce(t, Options{File: file}, os.Getenv(nameVar))
		return
	}
	file := filepath.Join(t.TempDir(), "junctor.json")
	write(t, file, "{}", 0o600)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestEditsOfSeveralProcesses$")
			cmd.Env = append(os.Environ(), fileVar+"="+file, nameVar+"="+name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		})
	}
	wg.Wait()
	hasServers(t, file, 64)
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("beside the file: %v, %v", left, err)
	}
}

// TestTrustGivenAtOnceIsAllRemembered checks that concurrent calls of Add are
// all stored, so that no file is asked about again.
func TestTrustGivenAtOnceIsAllRemembered(t *testing.T) {
	user := t.TempDir()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if err := NewTrustStore(user).Add(TrustRequest{Path: fmt.Sprint("/p", i), Digest: "d"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 16 {
		if known, err := NewTrustStore(user).Trusted(TrustRequest{Path: fmt.Sprint("/p", i), Digest: "d"}); err != nil || !known {
			t.Errorf("file %d: %v, %v", i, known, err)
		}
	}
}

// TestRefusedEditMakesNoFolder checks that nothing is written for an invalid
// edit, and that the error of a folder that cannot be written explains it.
func TestRefusedEditMakesNoFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := Apply(Options{File: filepath.Join(dir, "new", "junctor.json")}, Remove("a")); !errors.Is(err, ErrNoServer) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
	file := filepath.Join(dir, "readonly", "junctor.json")
	write(t, file, "{}", 0o600)
	if err := os.Chmod(filepath.Dir(file), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(file), 0o700) })
	if f, err := os.CreateTemp(filepath.Dir(file), "x"); err == nil {
		_ = f.Close()
		t.Skip("this user can write everywhere")
	}
	_, err := Apply(Options{File: file}, Set("a", json.RawMessage(`{"command":"x"}`)))
	if !errors.Is(err, fs.ErrPermission) || !strings.HasPrefix(err.Error(), "edit "+file) {
		t.Error(err)
	}
}
