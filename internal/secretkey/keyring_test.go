package secretkey

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zalando/go-keyring"
)

func TestSealingKeyIsStoredInKeyring(t *testing.T) {
	keyring.MockInit()
	dir := t.TempDir()
	key, err := sealingKey(dir, true)
	if err != nil || len(key) != 32 {
		t.Fatalf("%d bytes, %v", len(key), err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil || !strings.HasPrefix(string(file), inKeyring) {
		t.Errorf("the file has %q, %v", file, err)
	}
	for _, use := range []bool{true, false} { // an existing key is found in either case
		if again, err := sealingKey(dir, use); err != nil || !bytes.Equal(again, key) {
			t.Errorf("another key, or none: %v", err)
		}
	}
	if other, err := sealingKey(t.TempDir(), true); err != nil || bytes.Equal(other, key) {
		t.Errorf("two gateways share a key: %v", err)
	}

	keyring.MockInitWithError(errors.New("no session"))
	if _, err := sealingKey(dir, true); err == nil || !strings.Contains(err.Error(), "JUNCTOR_SECRET_KEY") {
		t.Errorf("a keyring that is gone: %v", err)
	}
}

func TestSealingKeyWithoutKeyringIsStoredInFile(t *testing.T) {
	keyring.MockInitWithError(errors.New("no session"))
	dir := t.TempDir()
	key, err := sealingKey(dir, true)
	if err != nil || len(key) != 32 {
		t.Fatalf("%d bytes, %v", len(key), err)
	}
	keyring.MockInit() // a keyring that becomes available later is not used
	if again, err := sealingKey(dir, true); err != nil || !bytes.Equal(again, key) {
		t.Errorf("the key changed: %v", err)
	}
}

func TestHangingKeyringTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		unlocked := make(chan struct{})
		ask := func() ([]byte, error) { <-unlocked; return []byte("key"), nil }
		_, err := withTimeout("get", ask)
		if err == nil || time.Since(begun) != keyringTimeout {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		time.AfterFunc(time.Second, func() { close(unlocked) })
		again := func() ([]byte, error) { t.Error("the keyring is asked again before it has answered"); return nil, nil }
		if key, err := withTimeout("get", again); err != nil || string(key) != "key" {
			t.Errorf("the late answer is %q, %v", key, err)
		}
	})
}

// TestRealKeyring runs processes in a separate desktop session with a real
// Secret Service, which is either unlocked or locked with no one to unlock it.
func TestRealKeyring(t *testing.T) {
	if dir := os.Getenv("JUNCTOR_TEST_KEYRING"); dir != "" { // one of the processes
		key, err := sealingKey(dir, true)
		fmt.Printf("key %x %v\n", key, err)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("the keyrings of other systems are their users' own")
	}
	for _, program := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	ask := `"$1" -test.run '^TestRealKeyring$' | grep ^key`
	for name, tt := range map[string]struct {
		script    string
		processes int
		inKeyring bool
	}{
		"unlocked": {"printf secret | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; " + ask + " & " + ask + " & " + ask + "; wait; " + ask, 4, true},
		"locked":   {"gnome-keyring-daemon --start --components=secrets >/dev/null 2>&1; " + ask + "; " + ask, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			home, dir := t.TempDir(), t.TempDir()
			cmd := exec.Command("dbus-run-session", "--", "sh", "-c", tt.script, "sh", os.Args[0])
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=" + home, "JUNCTOR_TEST_KEYRING=" + dir, "GORACE=atexit_sleep_ms=10"}
			cmd.WaitDelay = time.Minute
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(got) != tt.processes {
				t.Fatalf("%d of %d processes answered: %q", len(got), tt.processes, got)
			}
			for _, line := range got {
				if fields := strings.Fields(line); len(fields) != 3 || len(fields[1]) != 64 || fields[2] != "<nil>" || line != got[0] {
					t.Errorf("%q beside %q", line, got[0])
				}
			}
			file, err := os.ReadFile(filepath.Join(dir, "secret.key"))
			if err != nil || strings.HasPrefix(string(file), inKeyring) != tt.inKeyring {
				t.Errorf("the file has %q, %v", file, err)
			}
			if !tt.inKeyring {
				return
			}
			if _, err := sealingKey(dir, true); err == nil || !strings.Contains(err.Error(), "JUNCTOR_SECRET_KEY") {
				t.Errorf("outside of the session: %v", err)
			}
		})
	}
}

func TestHasKeyring(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have their keyring everywhere")
	}
	if HasKeyring([]string{"HOME=/x"}) || !HasKeyring([]string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1/bus"}) {
		t.Error("a session is told by its message bus")
	}
}
