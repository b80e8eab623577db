package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"junctor/internal/jsonedit"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Edit is one change to the servers, the rules or the settings of a file.
type Edit struct {
	kind  editKind
	name  string
	value json.RawMessage
}

type editKind int

const (
	set editKind = iota
	merge
	remove
	rule
	setValue
	add // last: not sent to other processes, which may already have the server
)

// Set adds a server or replaces the one of that name. server is an entry as in
// mcpServers; variables in it are not expanded.
func Set(name string, server json.RawMessage) Edit { return Edit{set, name, server} }

// Add is like Set, but fails if the file already has the server.
func Add(name string, server json.RawMessage) Edit { return Edit{add, name, server} }

// Merge changes the keys of a server that patch has; null removes a key.
func Merge(name string, patch json.RawMessage) Edit { return Edit{merge, name, patch} }

// Remove removes a server.
func Remove(name string) Edit { return Edit{kind: remove, name: name} }

// Key returns the name of the server, the pattern of the rule, or the key of the
// setting that is changed; the latter with a dot before it, which no name begins
// with.
func (e Edit) Key() string {
	if e.kind == setValue {
		return "." + e.name
	}
	return e.name
}

// ErrNoServer means that a server to be changed is not in the file.
var ErrNoServer = errors.New("the file has no such server")

// ErrServerExists means that a server to be added is already in the file.
var ErrServerExists = errors.New("the file already has a server with that name")

var errNoPlace = errors.New("there is no configuration file and no folder to create one in; specify a file with --config")

// editPlace returns the file that Load would read or, if there is none, a new
// one in the user's folder. The path is empty if there is no such folder
// either.
func (o Options) editPlace() Place {
	place := Locate(o)
	if place.Path == "" {
		place = Place{Path: place.New, Named: true, How: "new"}
	}
	return place
}

// Apply applies the edits to the file that Load would read or, if there is
// none, to a new one in the user's folder, and returns the file's path. If the
// edits would cause new problems, it returns an *Error and writes nothing;
// existing problems of the file do not matter. A file that was found rather
// than named must be trusted, and remains trusted with its new content.
// Concurrent edits, also of other processes, are not lost.
func Apply(o Options, edits ...Edit) (string, error) {
	place := o.editPlace()
	if place.Path == "" {
		return "", errNoPlace
	}
	if _, err := os.Stat(filepath.Dir(place.Path)); errors.Is(err, fs.ErrNotExist) {
		if err := Check(o, edits...); err != nil {
			return "", err
		}
		if err := os.MkdirAll(filepath.Dir(place.Path), 0o700); err != nil {
			return "", fmt.Errorf("edit %s: %w", place.Path, err)
		}
	}
	unlock, err := o.lock(place)
	if err != nil {
		return "", err
	}
	defer unlock()
	// An editor does not use the lock and may write the file concurrently: then
	// retry with the new content.
	for range 5 {
		old, err := os.ReadFile(place.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			_, err = readSource(place.Path) // for an error that explains the reason
			return "", err
		}
		changed, err := EditBytes(old, edits...)
		if err != nil {
			return "", fmt.Errorf("edit %s: %w", place.Path, err)
		}
		if bytes.Equal(old, changed) {
			return place.Path, nil
		}
		if err := o.newProblems(place, old, changed); err != nil {
			return "", err
		}
		if now, err := os.ReadFile(place.Path); err == nil && !bytes.Equal(now, old) {
			continue
		}
		if !place.Named { // before the write, so that no process finds the file untrusted
			if err := o.updateTrust(place, changed, place.readDotenv); err != nil {
				return "", err
			}
		}
		if err := WriteFile(place.Path, changed); err != nil {
			return "", fmt.Errorf("edit %s: %w", place.Path, err)
		}
		return place.Path, nil
	}
	return "", fmt.Errorf("edit %s: another program keeps changing it; try again", place.Path)
}

// Check returns the error that Apply would return because of the edits, without
// writing anything.
func Check(o Options, edits ...Edit) error {
	place := o.editPlace()
	old, err := os.ReadFile(place.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	changed, err := EditBytes(old, edits...)
	if err != nil {
		return fmt.Errorf("edit %s: %w", place.Path, err)
	}
	return o.newProblems(place, old, changed)
}

// dotenv returns the path of the .env beside the file.
func (p Place) dotenv() string { return filepath.Join(filepath.Dir(p.Path), ".env") }

// readDotenv makes l read the .env beside the file.
func (p Place) readDotenv(l *loader) { l.readDotenv(p.dotenv()) }

// check loads a possible new content of the file, after prepare has added the
// variables of other files to the loader.
func (o Options) check(place Place, content []byte, prepare func(*loader)) (*loader, error) {
	l := o.loader(place, &source{file: place.Path, data: bytes.TrimPrefix(content, bom)})
	prepare(l)
	_, _, err := l.run()
	return l, err
}

// newProblems returns an *Error with the problems of the new content that the
// old one does not have, if any.
func (o Options) newProblems(place Place, old, changed []byte) error {
	_, err := o.check(place, changed, place.readDotenv)
	bad, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	known := map[string]bool{}
	if _, err := o.check(place, old, place.readDotenv); err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			for _, p := range e.Problems {
				known[p.Key+"\x00"+p.Msg] = true
			}
		}
	}
	fresh := slices.DeleteFunc(slices.Clone(bad.Problems), func(p Problem) bool { return known[p.Key+"\x00"+p.Msg] })
	if len(fresh) == 0 {
		return nil
	}
	for i := range fresh {
		fresh[i].Line, fresh[i].Column = 0, 0 // lines of a file that will not exist
	}
	return &Error{fresh}
}

// updateTrust records that the new content of a trusted file is trusted too,
// both with and without the variables of the working folder, which a person may
// refuse. The caller has locked the file and the trust store.
func (o Options) updateTrust(place Place, content []byte, dotenv func(*loader)) error {
	without, _ := o.check(place, content, dotenv)
	states := []string{without.state()}
	path := o.folderDotenv(place, o.WorkDir)
	if vars, part := readFolderDotenv(path); len(vars) > 0 {
		with, _ := o.check(place, content, func(l *loader) { dotenv(l); l.addFolder(path, vars, part) })
		states = append(states, with.state())
	}
	for _, state := range states {
		if err := NewTrustStore(o.UserDir).add(TrustRequest{Path: place.Path, Digest: state}); err != nil {
			return err
		}
	}
	return nil
}

// EditBytes applies the edits to the text of a file of any shape and leaves
// everything else unchanged. An empty text becomes a new file.
func EditBytes(text []byte, edits ...Edit) ([]byte, error) {
	for _, e := range edits {
		var err error
		if text, err = e.apply(text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

func (e Edit) apply(text []byte) ([]byte, error) {
	switch e.kind {
	case rule:
		return editRule(text, e.name, e.value)
	case setValue:
		return editValue(text, e.name, e.value)
	}
	if e.kind != remove {
		if !tool.ValidServer(e.name) {
			return nil, fmt.Errorf("invalid server name %q; use 1 to %d characters of A-Z a-z 0-9 _ -", e.name, tool.MaxServerName)
		}
		var obj map[string]json.RawMessage
		if err := json.Unmarshal(e.value, &obj); err != nil || obj == nil {
			return nil, fmt.Errorf("the entry of %s is not a JSON object", e.name)
		}
	}
	spot, err := findServer(text, e.name)
	if err != nil {
		return nil, err
	}
	if spot.path == nil {
		if e.kind != set && e.kind != add {
			return nil, fmt.Errorf("%s: %w", e.name, ErrNoServer)
		}
		return spot.add(text, e.name, e.value)
	}
	switch e.kind {
	case add:
		return nil, fmt.Errorf("%s: %w", e.name, ErrServerExists)
	case remove:
		return jsonedit.Remove(text, spot.path...)
	}
	return rewrite(text, spot, e.value, e.kind == set)
}

// serverLocation is the location of a server in the file, or where to add it.
type serverLocation struct {
	path      []string // of the server; nil when it is not in the file
	container []string // where to add it
	inArray   bool
	nameKey   string // the key that names an entry of an array
}

// findServer finds a server in a file of any shape.
func findServer(text []byte, name string) (serverLocation, error) {
	src := &source{file: "the file", data: bytes.TrimPrefix(text, bom)}
	if len(bytes.TrimSpace(src.data)) == 0 {
		return serverLocation{container: containers[:1]}, nil
	}
	v, err := src.parse()
	if err != nil {
		return serverLocation{}, err
	}
	root := newTree(src, v, func(Problem) {})
	if root.kind == array {
		return locateInArray(root, nil, "name", name), nil
	}
	if root.kind != object {
		return serverLocation{}, fmt.Errorf("the file is %s and has no place for servers", root.kind)
	}
	found := serverLocation{}
	look := func(c *node, path ...string) bool {
		if c == nil {
			return false
		}
		s := serverLocation{container: path}
		switch c.kind {
		case object:
			for _, m := range c.members {
				if m.name == name || !tool.ValidServer(m.name) && LegalName(m.name) == name {
					s.path = append(slices.Clone(path), m.name)
				}
			}
		case array:
			key := "name"
			if path[len(path)-1] == "backends" {
				key = "id"
			}
			s = locateInArray(c, path, key, name)
		default:
			return false
		}
		if found.container == nil || s.path != nil {
			found = s
		}
		return s.path != nil
	}
	for _, key := range containers {
		if look(root.get(key), key) {
			return found, nil
		}
	}
	if m := root.get("mcp"); m != nil && m.kind == object && look(m.get("servers"), "mcp", "servers") {
		return found, nil
	}
	if found.container == nil {
		found.container = containers[:1]
	}
	return found, nil
}

func locateInArray(list *node, path []string, key, name string) serverLocation {
	s := serverLocation{container: path, inArray: true, nameKey: key}
	for i, e := range list.elems {
		for _, k := range []string{"name", "id"} {
			if n := e.get(k); n != nil && n.kind == str && n.text == name {
				s.path = append(slices.Clone(path), strconv.Itoa(i))
			}
		}
	}
	return s
}

// add adds a new server to the container.
func (s serverLocation) add(text []byte, name string, server json.RawMessage) ([]byte, error) {
	if !s.inArray {
		return jsonedit.Set(text, server, append(slices.Clone(s.container), name)...)
	}
	// In an array the name is the first key of the entry.
	entry := rawjson.SetField(server, rawjson.MarshalOrNull(name), s.nameKey)
	return jsonedit.Set(text, entry, append(slices.Clone(s.container), "-")...)
}

// rewrite changes the keys of a server one by one, so that comments are kept.
// With whole set it also removes the keys that server does not have.
func rewrite(text []byte, s serverLocation, server json.RawMessage, whole bool) ([]byte, error) {
	at := func(key string) []string { return append(slices.Clone(s.path), key) }
	raw, _ := jsonedit.Get(text, s.path...)
	if !rawjson.IsObject(raw) {
		return nil, fmt.Errorf("the entry in the file is not an object")
	}
	var err error
	for key := range rawjson.Members(raw) {
		if whole && rawjson.Field(server, key) == nil && !(s.inArray && (key == "name" || key == "id")) {
			if text, err = jsonedit.Remove(text, at(key)...); err != nil {
				return nil, err
			}
		}
	}
	for key, value := range rawjson.Members(server) {
		if string(value) == "null" && !whole {
			text, err = jsonedit.Remove(text, at(key)...)
		} else {
			text, err = jsonedit.Set(text, value, at(key)...)
		}
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}
