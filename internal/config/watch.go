package config

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Update is the result of a change of the files: a new configuration, or an
// error that explains why the old one remains in effect.
type Update struct {
	Config *Config
	Notes  []Note
	Err    error
}

const (
	// quietPeriod is how long the files must be unchanged before a reload,
	// because editors write in several steps.
	quietPeriod = 100 * time.Millisecond
	// maxDelay bounds how long further events may postpone a reload: other files
	// in the folder may change continuously.
	maxDelay = time.Second
	// pollInterval is how often the files are checked without an event from the
	// system, which reports no changes on network drives.
	pollInterval = 15 * time.Second
)

// Watch calls deliver after every change of the configuration until ctx is
// done: of the file, which may also be created, of the .env beside it and that
// of the working folder, and of the env files that it names. It handles editors
// that replace the file and symbolic links that are switched to another folder.
// current is the configuration in use, or nil if none has been loaded. deliver
// is called on the goroutine of Watch, one call at a time.
func Watch(ctx context.Context, o Options, current *Config, deliver func(Update)) error {
	w := &watcher{o: o, watched: map[string]bool{}, place: Locate(o)}
	if notify, err := fsnotify.NewWatcher(); err == nil {
		defer notify.Close()
		w.notify = notify
	}
	w.files = w.candidates()
	if current != nil {
		w.place = current.place
		w.files = append(w.files, current.files...)
	}
	w.seen = w.fingerprint()
	if current != nil && !current.Current(o) {
		w.seen = "" // a file has changed since current was loaded
	}
	w.watchFolders()
	return w.run(ctx, deliver)
}

type watcher struct {
	o       Options
	place   Place             // of the configuration in use
	notify  *fsnotify.Watcher // nil where the system has none: then the files are only polled
	files   []string
	watched map[string]bool
	seen    string
}

func (w *watcher) run(ctx context.Context, deliver func(Update)) error {
	var events chan fsnotify.Event
	var errs chan error
	if w.notify != nil {
		events, errs = w.notify.Events, w.notify.Errors
	}
	quiet := time.NewTimer(0) // check once at the start
	defer quiet.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var since time.Time // time of the first event since the last reload
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-events:
			if !ok {
				events = nil
				break
			}
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				delete(w.watched, e.Name) // it may be a watched folder
			}
			if since.IsZero() {
				since = time.Now()
			}
			if time.Since(since) < maxDelay {
				quiet.Reset(quietPeriod)
			}
		case _, ok := <-errs:
			if !ok {
				errs = nil
			}
			// Events may have been lost.
			quiet.Reset(quietPeriod)
		case <-tick.C:
			w.reloadIfChanged(deliver)
		case <-quiet.C:
			since = time.Time{}
			w.reloadIfChanged(deliver)
		}
	}
}

// reloadIfChanged loads the configuration again if one of the files has changed.
func (w *watcher) reloadIfChanged(deliver func(Update)) {
	now := w.fingerprint()
	if now == w.seen {
		w.watchFolders()
		return
	}
	var u Update
	if w.place.Path != "" && Locate(w.o).Path != w.place.Path {
		u.Err = &Error{[]Problem{{File: w.place.Path, Msg: "is no longer the configuration file; the running configuration stays in effect until the next start"}}}
		w.seen = now
	} else {
		before := w.files
		// Watch the files that a failed load read, too: fixing one may make it
		// succeed.
		var read []string
		var parts [][]byte
		o := w.o
		o.onRead = func(path string, p [][]byte) { read, parts = append(read, path), append(parts, p...) }
		u.Config, u.Notes, u.Err = Load(o)
		w.files = append(w.candidates(), read...)
		if u.Config != nil {
			w.place = u.Config.place
		}
		w.seen = w.fingerprint()
		if fingerprint(before) != now || fingerprint(read) != digest(parts...) {
			w.seen = "" // changed while it was read: reload again
		}
	}
	w.watchFolders()
	deliver(u)
}

// candidates returns the files that determine the configuration, whether they
// exist or not.
func (w *watcher) candidates() []string {
	place := Locate(w.o)
	files := []string{place.Path, place.New}
	if place.Path != "" {
		files = append(files, place.dotenv())
	}
	if place.Path == "" && w.o.WorkDir != "" {
		for _, name := range fileNames {
			files = append(files, filepath.Join(w.o.WorkDir, name))
		}
	}
	if path := w.o.folderDotenv(place, w.o.WorkDir); path != "" {
		files = append(files, path)
	}
	return files
}

// Current reports whether the files are unchanged since the configuration was
// loaded.
func (c *Config) Current(o Options) bool {
	return Locate(o).Path == c.place.Path && fingerprint(c.files) == c.state
}

// fingerprint returns a digest of the content of all files.
func (w *watcher) fingerprint() string { return fingerprint(w.files) }

func fingerprint(files []string) string {
	var parts [][]byte
	for _, path := range files {
		if path == "" {
			continue
		}
		src, err := readSource(path)
		parts = append(parts, part(path, src, err)...)
	}
	return digest(parts...)
}

// watchFolders watches the existing folders of all files and of the targets of
// their symbolic links.
func (w *watcher) watchFolders() {
	if w.notify == nil {
		return
	}
	for _, path := range w.files {
		for hops := 0; path != "" && hops < 10; hops++ {
			w.watch(filepath.Dir(path))
			target, err := os.Readlink(path)
			if err != nil {
				// The folder itself may be a link, as ..data is in Kubernetes.
				if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && dir != filepath.Dir(path) {
					w.watch(dir)
				}
				break
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			path = target
		}
	}
}

// watch watches a folder or, if it does not exist, its nearest existing parent.
func (w *watcher) watch(dir string) {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		}
		delete(w.watched, dir) // it may be created again
		up := filepath.Dir(dir)
		if up == dir {
			return
		}
		dir = up
	}
	if !w.watched[dir] && w.notify.Add(dir) == nil {
		w.watched[dir] = true
	}
}
