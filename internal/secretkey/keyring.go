package secretkey

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
	"golang.org/x/sync/singleflight"

	"junctor/internal/store"
)

const (
	// keyringService is the service name of the key in the keyring. The data
	// folder distinguishes the keys of several gateways.
	keyringService = "junctor"
	// inKeyring, followed by the name of the key, is the content of the key
	// file if the key is in the keyring, so that a process that cannot access
	// the keyring does not create a second key.
	inKeyring = "the key is in the keyring of the operating system, as "
	// keyringTimeout is the timeout of the keyring: it may ask a person to
	// unlock it who is not present.
	keyringTimeout = 3 * time.Second
)

// HasKeyring reports whether this process belongs to a session that may have a
// keyring. On Linux that is one with a message bus; without one, the library
// would start it.
func HasKeyring(environ []string) bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	case "linux":
		return slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "DBUS_SESSION_BUS_ADDRESS=") })
	}
	return false
}

// sealingKey returns the key that seals secrets. If there is none, it creates
// one: in the keyring if there is one, or else in a file that only this user
// can read. The key is never moved.
func sealingKey(dataDir string, useKeyring bool) ([]byte, error) {
	path := filepath.Join(dataDir, "secret.key")
	if _, err := os.Stat(path); useKeyring && errors.Is(err, fs.ErrNotExist) {
		// If there is no keyring after all, the file is used.
		_, _ = withTimeout("make "+path, func() ([]byte, error) { return nil, keyringMake(dataDir, path) })
	}
	data, err := os.ReadFile(path)
	name, elsewhere := strings.CutPrefix(string(data), inKeyring)
	if err != nil || !elsewhere {
		return store.KeyFile(path)
	}
	key, err := withTimeout("get "+name, func() ([]byte, error) { return keyringGet(strings.TrimSpace(name)) })
	if err != nil {
		return nil, fmt.Errorf("the key that encrypts tokens is in the keyring of your desktop session, which cannot be reached from here (%w); set JUNCTOR_SECRET_KEY, or remove %s and log in to the servers again", err, path)
	}
	return key, nil
}

// asking has the requests to the keyring that wait for its answer.
var asking singleflight.Group

// withTimeout calls ask and waits for its result, at most for keyringTimeout. If
// an earlier request for the same thing is still waiting for an answer, perhaps
// of a person, it waits for that one.
func withTimeout(what string, ask func() ([]byte, error)) ([]byte, error) {
	answer := asking.DoChan(what, func() (any, error) { return ask() })
	select {
	case a := <-answer:
		key, _ := a.Val.([]byte)
		return key, a.Err
	case <-time.After(keyringTimeout):
		return nil, errors.New("the keyring did not answer")
	}
}

func keyringGet(name string) ([]byte, error) {
	text, err := keyring.Get(keyringService, name)
	if err != nil {
		return nil, err
	}
	return store.ParseKey(text)
}

// keyringMake stores a new key in the keyring and its name in the file at path.
// If several processes do so concurrently, one of them creates the file; the
// others delete their keys.
func keyringMake(dataDir, path string) error {
	fresh := make([]byte, store.KeySize)
	_, _ = rand.Read(fresh) // never fails
	name := dataDir + " " + rand.Text()[:8]
	if err := keyring.Set(keyringService, name, base64.StdEncoding.EncodeToString(fresh)); err != nil {
		return err
	}
	if err := store.CreateFile(path, inKeyring+name+"\n"); err != nil {
		return errors.Join(err, keyring.Delete(keyringService, name))
	}
	return nil
}
