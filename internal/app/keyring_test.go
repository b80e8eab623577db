package app

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zalando/go-keyring"
)

func TestSealingKeyGoesIntoTheKeyring(t *testing.T) {
	keyring.MockInit()
	dir := t.TempDir()
	key, err := sealingKey(dir, true)
	if err != nil || len(key) != 32 {
		t.Fatalf("%d bytes, %v", len(key), err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil || string(file) != inKeyring {
		t.Errorf("the file has %q, %v", file, err)
	}
	for _, use := range []bool{true, false} { // once there it is found by everyone
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

func TestSealingKeyWithoutAKeyringIsInAFile(t *testing.T) {
	keyring.MockInitWithError(errors.New("no session"))
	dir := t.TempDir()
	key, err := sealingKey(dir, true)
	if err != nil || len(key) != 32 {
		t.Fatalf("%d bytes, %v", len(key), err)
	}
	keyring.MockInit() // a keyring that comes later does not take over
	if again, err := sealingKey(dir, true); err != nil || !bytes.Equal(again, key) {
		t.Errorf("the key changed: %v", err)
	}
}

func TestAKeyringMayNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		unlocked := make(chan struct{})
		defer close(unlocked)
		_, err := withPatience(func() ([]byte, error) { <-unlocked; return nil, nil })
		if err == nil || time.Since(begun) != keyringPatience {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

func TestHasKeyring(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have their keyring everywhere")
	}
	if hasKeyring([]string{"HOME=/x"}) || !hasKeyring([]string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1/bus"}) {
		t.Error("a session is told by its message bus")
	}
}
