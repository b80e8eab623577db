package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"junctor/internal/config"
	"junctor/internal/jsonedit"
)

// Found is an existing file and its servers.
type Found struct {
	File    File     `json:"file"`
	Servers []Server `json:"servers"`
	Skipped []string `json:"skipped,omitempty"` // entries that are not valid servers, and why
	Err     error    `json:"-"`                 // why the file could not be read completely
}

// Server is a server in a client's file, converted for Junctor.
type Server struct {
	Name     string          `json:"name"`               // valid in Junctor
	Original string          `json:"original"`           // in the client's file
	JSON     json.RawMessage `json:"-"`                  // an entry of mcpServers; may contain secrets
	File     File            `json:"file"`               // the file it is from
	Disabled bool            `json:"disabled,omitempty"` // by the client; it remains disabled
	Notes    []string        `json:"notes,omitempty"`    // what was changed or omitted
	Secrets  []Secret        `json:"secrets,omitempty"`  // plain-text secrets
}

// String returns the server's name and file, but no secrets.
func (s Server) String() string { return s.Name + " in " + s.File.Path }

// GoString implements fmt.GoStringer, for %#v.
func (s Server) GoString() string { return s.String() }

// Discover reads the files of the given clients, or of all clients if there
// are none. Missing files are omitted. It starts nothing and changes nothing.
func Discover(m Machine, clients ...Client) []Found {
	if len(clients) == 0 {
		clients = known
	}
	var all []Found
	for _, c := range clients {
		seen := map[string]bool{}
		for _, f := range c.Files(m) {
			for _, path := range expandFiles(f) {
				one := f
				one.Path = path
				if strings.HasSuffix(path, ".json") {
					one.Format = JSON
				}
				id := one.Path + "\x00" + strings.Join(one.keys, "\x00")
				if found, ok := read(m, c, one); ok && !seen[id] {
					seen[id] = true
					all = append(all, found)
				}
			}
		}
	}
	return all
}

// expandFiles returns the files that match a path with a trailing wildcard.
func expandFiles(f File) []string {
	if !strings.HasSuffix(f.Path, "*") {
		return []string{f.Path}
	}
	entries, err := os.ReadDir(filepath.Dir(f.Path))
	if err != nil {
		return nil
	}
	var paths []string
	for _, e := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			paths = append(paths, filepath.Join(filepath.Dir(f.Path), e.Name()))
		}
	}
	return paths
}

// maxFile bounds a client's file. Files may be large: Claude Code stores its
// history in the same file.
const maxFile = 64 << 20

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a named pipe would block
		return nil, fmt.Errorf("%s: is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: is larger than %d MiB", path, maxFile>>20)
	}
	return data, err
}

// read reads one file; ok is false if the file does not exist or has no
// servers.
func read(m Machine, c Client, f File) (Found, bool) {
	found := Found{File: f}
	data, err := readFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return found, false
	}
	if err != nil {
		found.Err = err
		return found, true
	}
	raw, err := serversIn(f, data)
	if err != nil {
		found.Err = fmt.Errorf("%s: %w", f.Path, err)
		return found, true
	}
	if raw == nil {
		return found, false
	}
	if c.style == literal {
		// Escape literal "${" before names of variables, which some clients
		// write as plain strings, are converted to variables.
		raw = mapStrings(raw, func(_, s string) string { return strings.ReplaceAll(s, "${", "$${") })
	}
	entries, err := entriesIn(f, raw)
	if err != nil {
		found.Err = fmt.Errorf("%s: %w", f.Path, withoutLines(err))
	}
	beside := settingsIn(c, f, data)
	for _, e := range entries {
		if e.Server == nil {
			found.Skipped = append(found.Skipped, e.Name+": is not an object")
			continue
		}
		if _, command := member(e.Server, "command"); !command {
			if _, url := member(e.Server, "url"); !url {
				found.Skipped = append(found.Skipped, e.Name+": has neither a command nor a url; it may come from an extension of the client")
				continue
			}
		}
		s := Server{Name: config.LegalName(e.Name), Original: e.Name, File: f}
		if s.Name == "" {
			s.Name = "server"
		}
		if s.Name != e.Name {
			s.Notes = append(s.Notes, fmt.Sprintf("is named %q there, which is not a valid name here", e.Name))
		}
		for _, p := range e.Problems {
			s.Notes = append(s.Notes, p.Key[strings.LastIndexByte(p.Key, '.')+1:]+": "+p.Msg)
		}
		entry, err := beside.disable(c.translate(m, f, e.Server, beside.inputs, &s.Notes), &s)
		if err != nil {
			found.Skipped = append(found.Skipped, fmt.Sprintf("%s: %v", e.Name, err))
			continue
		}
		s.JSON = tidy(entry)
		s.Secrets = findSecrets(s.Name, s.JSON)
		found.Servers = append(found.Servers, s)
	}
	return found, len(found.Servers) > 0 || len(found.Skipped) > 0 || found.Err != nil
}

// entriesIn returns the servers of a file, as returned by serversIn, in
// Junctor's own format.
func entriesIn(f File, servers json.RawMessage) ([]config.Entry, error) {
	return config.Entries(f.Path, fmt.Appendf(nil, `{"mcpServers":%s}`, servers))
}

// withoutLines removes file, line and column from problems, because they refer
// to a generated text.
func withoutLines(err error) error {
	e, ok := errors.AsType[*config.Error](err)
	if !ok {
		return err
	}
	problems := slices.Clone(e.Problems)
	for i := range problems {
		problems[i].File, problems[i].Line, problems[i].Column = "", 0, 0
	}
	return &config.Error{Problems: problems}
}

// serversIn returns the servers of a file as JSON, as an object by name or as
// a list; nil if it has none.
func serversIn(f File, data []byte) (json.RawMessage, error) {
	switch f.Format {
	case TOML:
		return tomlServers(data, f.keys[0])
	case YAML:
		return yamlServers(data)
	}
	if len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))) == 0 {
		return nil, nil
	}
	if err := jsonedit.Check(data); err != nil {
		return nil, err
	}
	raw, ok := jsonedit.Get(data, f.keys...)
	if !ok || len(raw) == 0 || raw[0] != '{' && raw[0] != '[' {
		return nil, nil
	}
	return raw, nil
}
