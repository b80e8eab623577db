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

// editing is held during every edit in this process. It covers folders that
// cannot be locked, for which [Lock] has no file lock.
var editing sync.Mutex

// lockTimeout is how long an edit waits for the lock of each folder.
const lockTimeout = 30 * time.Second

// Lock locks the folders of the files against other edits, including those of
// other processes, until unlock is called. A caller that changes a part of a
// file holds the lock from reading the file to writing it. The lock is not
// reentrant.
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
	slices.Sort(folders) // so that concurrent calls do not deadlock
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
		// A folder that cannot be opened usually cannot be written either: the
		// write reports the reason.
	}
	return unlock, nil
}

// lock locks the file and the .env beside it against other edits, and ensures
// that the file was named or is trusted.
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
		unlock() // others must not wait for a person
		if ask == nil {
			return nil, err
		}
		o.Trust, ask = ask, nil
		_, _, err = Load(o)
		if _, untrusted := errors.AsType[*UntrustedError](err); untrusted {
			return nil, err
		}
		if err == nil && trusted == "" { // the answer cannot be stored
			return Lock(place.Path, place.dotenv())
		}
	}
}
