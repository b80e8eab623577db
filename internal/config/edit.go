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
	add // last: it is not sent to other processes, which may have the server
)

// Set adds a server, or makes the one of that name what server says. server
// is an entry as it stands in mcpServers; variables in it stay variables.
func Set(name string, server json.RawMessage) Edit { return Edit{set, name, server} }

// Add is Set for a server that must not be in the file yet.
func Add(name string, server json.RawMessage) Edit { return Edit{add, name, server} }

// Merge changes the keys of a server that patch has; null removes a key.
func Merge(name string, patch json.RawMessage) Edit { return Edit{merge, name, patch} }

// Remove removes a server.
func Remove(name string) Edit { return Edit{kind: remove, name: name} }

// Key is the name of the server, the pattern of the rule, or the key of the
// setting that is changed; the latter after a dot, which no name begins with.
func (e Edit) Key() string {
	if e.kind == setValue {
		return "." + e.name
	}
	return e.name
}

// ErrNoServer is wrapped when a server to be changed is not in the file.
var ErrNoServer = errors.New("there is no such server in the file")

// ErrServerExists is wrapped when a server to be added is in the file.
var ErrServerExists = errors.New("there is a server of that name in the file already")

var errNoPlace = errors.New("there is no configuration file and no folder to make one in; name one with --config")

// editPlace returns the file that Load would read, or a new one in the user's
// folder when there is none; without a path where there is no folder either.
func (o Options) editPlace() Place {
	place := Locate(o)
	if place.Path == "" {
		place = Place{Path: place.New, Named: true, How: "new"}
	}
	return place
}

// Apply makes the edits in the file that Load would read, or in a new one in
// the user's folder when there is none, and returns the file's path. Edits
// that would bring new problems are refused as an *Error and nothing is
// written; problems that the file had before do not matter. A file that
// was found and not named must be trusted, and stays so with its new content.
// Edits that are made at the same time, also by other processes, are all made.
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
	// An editor, which knows of no lock, may write the file at the same time;
	// then try again on what it wrote.
	for range 5 {
		old, err := os.ReadFile(place.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			_, err = readSource(place.Path) // for an error that says what the file is
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
		if !place.Named { // before it is written, so that nobody finds it untrusted
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

// Check returns the error that Apply would refuse the edits with, and writes
// nothing.
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

// dotenv is the .env beside the file.
func (p Place) dotenv() string { return filepath.Join(filepath.Dir(p.Path), ".env") }

// readDotenv lets a loader read the .env beside the file.
func (p Place) readDotenv(l *loader) { l.readDotenv(p.dotenv()) }

// check runs the loader over a content that the file may get, after prepare has
// given it the variables of other files.
func (o Options) check(place Place, content []byte, prepare func(*loader)) (*loader, error) {
	l := o.loader(place, &source{file: place.Path, data: bytes.TrimPrefix(content, bom)})
	prepare(l)
	_, _, err := l.run()
	return l, err
}

// newProblems returns the problems of the new content that the old one did
// not have.
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

// updateTrust records that the new content of a file that was trusted before is
// trusted too, with and without the variables of the working folder, which a
// person may refuse. The file and the trust store are locked.
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

// EditBytes makes the edits in a text, in whatever shape it has, and keeps
// everything else as it is. An empty text becomes a new file.
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

// serverLocation is where a server is in the file, or where it would be added.
type serverLocation struct {
	path      []string // of the server; nil when it is not there
	container []string // where to add it
	inArray   bool
	nameKey   string // the key that names an entry of an array
}

// findServer looks for a server in all the shapes.
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

// add puts a new server into the container.
func (s serverLocation) add(text []byte, name string, server json.RawMessage) ([]byte, error) {
	if !s.inArray {
		return jsonedit.Set(text, server, append(slices.Clone(s.container), name)...)
	}
	// In an array the entry names itself, first of all.
	entry := rawjson.SetField(server, rawjson.MarshalOrNull(name), s.nameKey)
	return jsonedit.Set(text, entry, append(slices.Clone(s.container), "-")...)
}

// rewrite changes the keys of a server one by one, so that unchanged keys keep
// their comments. With whole set it removes the keys that server does not have.
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
