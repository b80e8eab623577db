package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"junctor/internal/filelock"
)

// editing is held during every edit of this process. It is for folders that
// cannot be locked, for which [Lock] takes no file lock.
var editing sync.Mutex

// lockTimeout bounds how long an edit waits for those of other processes.
const lockTimeout = 30 * time.Second

// Lock keeps all other edits of files in the folders of these files waiting,
// those of other processes too, until unlock is called. Whoever changes a part
// of a file holds it from reading the file to writing it. It must not be called
// again before unlock.
func Lock(files ...string) (unlock func(), err error) {
	var folders []string
	for _, file := range files {
		if file == "" { // of a user without a folder
			continue
		}
		if target, err := filepath.EvalSymlinks(file); err == nil {
			file = target
		}
		folder, err := filepath.Abs(filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		if target, err := filepath.EvalSymlinks(folder); err == nil {
			folder = target
		}
		folders = append(folders, folder)
	}
	slices.Sort(folders) // so that two that want the same folders do not wait for each other
	editing.Lock()
	var held []*os.File
	unlock = func() {
		for _, f := range held {
			_ = f.Close()
		}
		editing.Unlock()
	}
	for _, folder := range slices.Compact(folders) {
		f, err := filelock.HoldFolder(folder, lockTimeout)
		switch {
		case err == nil:
			held = append(held, f)
		case errors.Is(err, filelock.ErrHeld):
			unlock()
			return nil, fmt.Errorf("another program has been editing files in %s for %v; try again", folder, lockTimeout)
		}
		// A folder that cannot be opened can rarely be written: writing says why.
	}
	return unlock, nil
}

// lock keeps other edits of the file and of the .env beside it waiting, and makes
// sure that the file was named or is trusted.
func (o Options) lock(place Place) (unlock func(), err error) {
	if place.Named {
		return Lock(place.Path, place.dotenv())
	}
	ask, trusted := o.Trust, NewTrustStore(o.UserDir).path
	for {
		unlock, err := Lock(place.Path, place.dotenv(), trusted)
		if err != nil {
			return nil, err
		}
		o.Trust = nil
		_, _, err = Load(o)
		if _, untrusted := errors.AsType[*UntrustedError](err); !untrusted {
			return unlock, nil
		}
		unlock() // others need not wait for a person
		if ask == nil {
			return nil, err
		}
		o.Trust, ask = ask, nil
		_, _, err = Load(o)
		if _, untrusted := errors.AsType[*UntrustedError](err); untrusted {
			return nil, err
		}
		if err == nil && trusted == "" { // the answer is stored nowhere
			return Lock(place.Path, place.dotenv())
		}
	}
}
