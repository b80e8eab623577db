package clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"junctor/internal/config"
	"junctor/internal/jsonedit"
	"junctor/internal/rawjson"
)

// Connection is how a client shall reach Junctor.
type Connection struct {
	Name    string   // the server's name in the client; default junctor
	Command string   // the program to start, with Args; or
	Args    []string // its arguments
	URL     string   // the address of a running one
	Scope   Scope    // which of the client's files; default User
	Replace bool     // take the client's other servers out: they move into Junctor
}

// Change is what connecting or disconnecting would do to a file. Nothing is
// done before Apply.
type Change struct {
	File   File
	Before []byte   // nil when there is no file yet
	After  []byte   // nil when the file is removed
	Moved  []Server // the servers that are taken out
	Backup string   // where the old file is kept; empty when there is none

	dropBackup bool
}

// backupSuffix is added to the name of a file for the copy from before.
const backupSuffix = ".before-junctor"

// Connect works out how to write Junctor into the client's file.
func (c Client) Connect(m Machine, want Connection) (Change, error) {
	f, err := c.target(m, want.Scope)
	if err != nil {
		return Change{}, err
	}
	name := cmp.Or(want.Name, "junctor")
	var e entry
	switch {
	case want.URL == "" && want.Command == "":
		return Change{}, errors.New("nothing to connect: neither a command nor a URL")
	case want.URL == "":
		e = c.stdio(want.Command, slices.Clone(want.Args))
	case c.http == nil:
		return Change{}, fmt.Errorf("%s only starts servers itself and takes no address; connect it without --url", c.Name)
	default:
		e = c.http(want.URL)
	}
	change := Change{File: f}
	if change.Before, err = readFile(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Change{}, fmt.Errorf("connect %s: %w", c.Name, err)
	} else if err != nil {
		change.Before = nil
	}
	change.After = change.Before
	if want.Replace {
		found, _ := read(m, c, f)
		if found.Err != nil {
			return Change{}, found.Err
		}
		for _, s := range found.Servers {
			if s.Original == name || s.Self() {
				continue
			}
			if change.After, err = removeServer(f, change.After, s.Original); err != nil {
				return Change{}, fmt.Errorf("connect %s: %w", c.Name, err)
			}
			change.Moved = append(change.Moved, s)
		}
	}
	if change.After, err = setServer(f, change.After, name, e); err != nil {
		return Change{}, fmt.Errorf("connect %s: %w", c.Name, err)
	}
	if change.Before != nil && change.Changes() {
		change.Backup = f.Path + backupSuffix
	}
	return change, nil
}

// Changes reports whether Apply would change the file.
func (ch Change) Changes() bool { return !bytes.Equal(ch.Before, ch.After) }

// Apply keeps the old file and writes the new one. A copy from an earlier
// connection is not overwritten: the oldest is what the user had.
func (ch Change) Apply() error {
	path := ch.File.Path
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unlock, err := config.Lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	switch now, err := readFile(path); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", path, err)
	case (err == nil) != (ch.Before != nil) || !bytes.Equal(now, ch.Before):
		return fmt.Errorf("%s changed in the meantime; try again", path)
	}
	if ch.Backup != "" {
		mode := fs.FileMode(0o600)
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
		b, err := os.OpenFile(ch.Backup, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err == nil {
			_, err = b.Write(ch.Before)
			err = errors.Join(err, b.Close())
		} else if errors.Is(err, fs.ErrExist) {
			err = checkBackup(ch.Backup)
		}
		if err != nil {
			return fmt.Errorf("keep %s: %w", path, err)
		}
	}
	switch {
	case ch.Changes() && ch.After == nil:
		if err := os.Remove(path); err != nil {
			return err
		}
	case ch.Changes():
		if err := config.WriteFile(path, ch.After); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	if ch.dropBackup {
		if err := os.Remove(path + backupSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// checkBackup refuses a copy that Apply did not make: through a link that came
// with the folder, another file's content would be put back as the user's own.
func checkBackup(path string) error {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file, so Junctor did not make it; remove it and try again", path)
	}
	return err
}

// target is the file to write.
func (c Client) target(m Machine, scope Scope) (File, error) {
	scope = cmp.Or(scope, User)
	for _, f := range c.Files(m) {
		if f.connect && f.Scope == scope {
			return f, nil
		}
	}
	return File{}, fmt.Errorf("%s keeps no servers for the scope %q", c.Name, scope)
}

// MarshalJSON writes the keys in order.
func (e entry) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range e {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(rawjson.MarshalOrNull(p.key))
		b.WriteByte(':')
		b.Write(rawjson.MarshalOrNull(p.value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func setServer(f File, text []byte, name string, e entry) ([]byte, error) {
	if f.Format == TOML {
		return setTOML(text, f.keys[0], name, e)
	}
	raw, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	for n := 1; n <= len(f.keys); n++ { // null is as good as nothing
		if v, ok := jsonedit.Get(text, f.keys[:n]...); ok && string(v) == "null" {
			if text, err = jsonedit.Set(text, json.RawMessage("{}"), f.keys[:n]...); err != nil {
				return nil, err
			}
		}
	}
	return jsonedit.Set(text, raw, append(slices.Clone(f.keys), name)...)
}

func removeServer(f File, text []byte, name string) ([]byte, error) {
	if f.Format == TOML {
		return removeTOML(text, f.keys[0], name)
	}
	return jsonedit.Remove(text, append(slices.Clone(f.keys), name)...)
}
