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

// Connection specifies how a client connects to Junctor.
type Connection struct {
	Name    string   // name of the server in the client; default junctor
	Command string   // program to start; or URL
	Args    []string // its arguments
	URL     string   // URL of a running gateway
	Scope   Scope    // scope of the client's file; default User
	Replace bool     // remove the client's other servers: they are moved to Junctor
}

// Change is a planned change of a file by Connect or Undo. Apply makes it.
type Change struct {
	File   File
	Before []byte   // nil if the file does not exist
	After  []byte   // nil when the file is removed
	Moved  []Server // servers that are removed
	Backup string   // path of the copy of the old file; empty if there is none

	dropBackup bool
}

// backupSuffix is appended to the name of a file for the copy of the original.
const backupSuffix = ".before-junctor"

// Connect plans the change that adds Junctor to the client's file.
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
		return Change{}, fmt.Errorf("%s can only start servers itself and does not accept an address; connect it without --url", c.Name)
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

// Apply makes a copy of the old file and writes the new one. An existing copy
// is not overwritten, because it is the user's original.
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
			return fmt.Errorf("back up %s: %w", path, err)
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

// checkBackup returns an error for a copy that Apply did not make. Through a
// symbolic link that came with the folder, the content of another file could
// be restored as the user's own.
func checkBackup(path string) error {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file, so Junctor did not make it; remove it and try again", path)
	}
	return err
}

// target returns the file that connect writes for a scope.
func (c Client) target(m Machine, scope Scope) (File, error) {
	scope = cmp.Or(scope, User)
	for _, f := range c.Files(m) {
		if f.connect && f.Scope == scope {
			return f, nil
		}
	}
	return File{}, fmt.Errorf("%s does not support the scope %q", c.Name, scope)
}

// MarshalJSON implements json.Marshaler. It keeps the order of the keys.
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
	for n := 1; n <= len(f.keys); n++ { // treat null as missing
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
