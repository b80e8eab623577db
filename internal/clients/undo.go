package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"junctor/internal/jsonedit"
)

// Undo plans the change that removes Junctor from the client's file. If
// nothing else has changed, the original file is restored. Otherwise the
// change removes what Connect added and restores the servers it moved. Without
// a name, it removes every entry that is Junctor. A file that Connect created
// is removed if nothing was added to it since.
func (c Client) Undo(m Machine, scope Scope, name string) (Change, error) {
	f, err := c.target(m, scope)
	if err != nil {
		return Change{}, err
	}
	change := Change{File: f}
	if change.Before, err = readFile(f.Path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Change{}, fmt.Errorf("%s is not connected: there is no %s", c.Name, f.Path)
		}
		return Change{}, fmt.Errorf("disconnect %s: %w", c.Name, err)
	}
	names := []string{name}
	if name == "" {
		if names, err = own(m, c, f); err != nil {
			return Change{}, fmt.Errorf("disconnect %s: %w", c.Name, err)
		}
	}
	change.After = change.Before
	for _, n := range names {
		if change.After, err = removeServer(f, change.After, n); err != nil {
			return Change{}, fmt.Errorf("disconnect %s: %w", c.Name, err)
		}
	}
	var old []byte
	if err = checkBackup(f.Path + backupSuffix); err == nil {
		old, err = readFile(f.Path + backupSuffix)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return Change{}, fmt.Errorf("disconnect %s: %w", c.Name, err)
	default:
		change.dropBackup = true
		if change.After, err = restoreServers(f, change.After, old, names); err != nil {
			return Change{}, fmt.Errorf("disconnect %s: %w", c.Name, err)
		}
	}
	if change.Changes() {
		if change.After, err = prune(f, change.After, old); err != nil {
			return Change{}, fmt.Errorf("disconnect %s: %w", c.Name, err)
		}
	}
	if old != nil && sameMeaning(f, change.After, old) && sameComments(change.After, old) {
		change.After = old
	}
	return change, nil
}

// own returns the names of the entries that are Junctor.
func own(m Machine, c Client, f File) ([]string, error) {
	found, _ := read(m, c, f)
	if found.Err != nil {
		return nil, found.Err
	}
	var names []string
	for _, s := range found.Servers {
		if s.Self() {
			names = append(names, s.Original)
		}
	}
	return names, nil
}

// prune removes objects that Connect created around its entry and that are
// empty now. It returns nil if nothing is left of a file that did not exist
// before, in which case old is nil.
func prune(f File, text, old []byte) ([]byte, error) {
	empty := ""
	if f.Format == JSON {
		empty = "{}"
		for n := len(f.keys); n > 0; n-- {
			raw, ok := jsonedit.Get(text, f.keys[:n]...)
			was, had := jsonedit.Get(old, f.keys[:n]...)
			if !ok || !isBare(raw, "{}") || had && string(was) != "null" {
				break
			}
			var err error
			if had {
				text, err = jsonedit.Set(text, was, f.keys[:n]...)
			} else {
				text, err = jsonedit.Remove(text, f.keys[:n]...)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if isBare(text, empty) && isBare(old, "") {
		return old, nil
	}
	return text, nil
}

// isBare reports whether a text consists of want and white space.
func isBare(text []byte, want string) bool {
	return strings.Join(strings.Fields(string(text)), "") == want
}

// restoreServers adds the servers in old that are missing in text, except
// those named in except.
func restoreServers(f File, text, old []byte, except []string) ([]byte, error) {
	raw, err := serversIn(f, old)
	if err != nil || raw == nil || raw[0] != '{' {
		return text, nil // there were no servers to move
	}
	now, err := serversIn(f, text)
	if err != nil {
		return nil, err
	}
	var before, have map[string]json.RawMessage
	if err := json.Unmarshal(raw, &before); err != nil {
		return nil, err
	}
	if now != nil {
		if err := json.Unmarshal(now, &have); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := have[name]; there || slices.Contains(except, name) {
			continue
		}
		if f.Format == TOML {
			own, _ := splitTOML(string(old), f.keys[0], name)
			text = []byte(appendTOML(string(text), own))
			continue
		}
		if text, err = jsonedit.Set(text, before[name], append(slices.Clone(f.keys), name)...); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// sameMeaning reports whether two files have the same content.
func sameMeaning(f File, a, b []byte) bool {
	if f.Format == TOML {
		var x, y map[string]any
		_, errX := toml.Decode(string(a), &x)
		_, errY := toml.Decode(string(b), &y)
		return errX == nil && errY == nil && reflect.DeepEqual(x, y)
	}
	rawX, okX := jsonedit.Get(a)
	rawY, okY := jsonedit.Get(b)
	var x, y any
	return okX && okY && json.Unmarshal(rawX, &x) == nil && json.Unmarshal(rawY, &y) == nil && reflect.DeepEqual(x, y)
}

// sameComments reports whether every line of text that may contain a comment
// is also in old. Another program may have rewritten the file, which is no
// loss, but a person's new comments must be kept.
func sameComments(text, old []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if bytes.ContainsAny(line, "#/") && !bytes.Contains(old, line) {
			return false
		}
	}
	return true
}
