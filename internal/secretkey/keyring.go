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

	"junctor/internal/store"
)

const (
	// keyringService is the name under which the key is in the keyring; the
	// data folder tells one gateway's from another's.
	keyringService = "junctor"
	// inKeyring stands in the key's file when the key itself is elsewhere,
	// with its name there, so that a process which cannot reach it does not
	// make a second one.
	inKeyring = "the key is in the keyring of the operating system, as "
	// keyringTimeout is how long a keyring may take: it may be asking a
	// person to unlock it, who may not be present.
	keyringTimeout = 3 * time.Second
)

// HasKeyring reports whether this process belongs to a session that may have a
// keyring. On Linux that is one with a message bus; without it the library
// would start one.
func HasKeyring(environ []string) bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	case "linux":
		return slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "DBUS_SESSION_BUS_ADDRESS=") })
	}
	return false
}

// sealingKey finds the key that seals secrets, or makes one: in the keyring
// where there is one, else in a file that only this user can read. Where it
// was put first it stays.
func sealingKey(dataDir string, useKeyring bool) ([]byte, error) {
	path := filepath.Join(dataDir, "secret.key")
	if _, err := os.Stat(path); useKeyring && errors.Is(err, fs.ErrNotExist) {
		// Without a keyring after all, the file is what there is.
		_, _ = withTimeout(func() ([]byte, error) { return nil, keyringMake(dataDir, path) })
	}
	data, err := os.ReadFile(path)
	name, elsewhere := strings.CutPrefix(string(data), inKeyring)
	if err != nil || !elsewhere {
		return store.KeyFile(path)
	}
	key, err := withTimeout(func() ([]byte, error) { return keyringGet(strings.TrimSpace(name)) })
	if err != nil {
		return nil, fmt.Errorf("the key that encrypts tokens is in the keyring of your desktop session, which cannot be reached from here (%w); set JUNCTOR_SECRET_KEY, or remove %s and log in to the servers again", err, path)
	}
	return key, nil
}

// withTimeout asks a keyring and waits no longer than keyringTimeout.
func withTimeout(ask func() ([]byte, error)) ([]byte, error) {
	type answer struct {
		key []byte
		err error
	}
	got := make(chan answer, 1)
	go func() {
		key, err := ask()
		got <- answer{key, err}
	}()
	select {
	case a := <-got:
		return a.key, a.err
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

// keyringMake puts a new key into the keyring, and its name into the file at
// path. Of several processes that do so at once one has made the file; the
// others take their keys back.
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
