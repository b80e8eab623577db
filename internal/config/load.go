package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"junctor/internal/llm"
	"junctor/internal/setting"
)

// Options is everything outside the file that the configuration depends on.
type Options struct {
	// File is the file that the user named (--config), if any.
	File string
	// LookupEnv reads the real environment; nil means an empty one.
	LookupEnv func(string) (string, bool)
	// WorkDir is the folder to search for a file if none is named. If it is
	// empty, there is no search; the stdio faces must not search.
	WorkDir string
	// BaseDir is the folder that relative paths in File and in the
	// environment are resolved against. Default: WorkDir.
	BaseDir string
	// UserDir is the user's configuration folder (os.UserConfigDir), which
	// contains Junctor's own. Empty when there is none.
	UserDir string
	// Home is the user's home, for ~ and ${userHome}.
	Home string
	// Trust asks a person whether a file that was found rather than named may be
	// used. If it is nil, such a file is refused unless it is already trusted.
	Trust func(TrustRequest) (bool, error)
	// Overrides are settings from the command line, which override all others.
	Overrides []Override

	// onRead is called with each file that was read or looked for, and its
	// content; nil except in Watch.
	onRead func(path string, parts [][]byte)
}

// Override is one setting from outside the file.
type Override struct {
	Key    string // such as listen or log.level
	Value  string
	Source string // where it is from, such as --listen, for display
}

// Load finds, reads and validates the configuration. An error is usually an
// *Error with every problem or an *UntrustedError. Without a file the
// configuration is [Default] overridden by the environment.
func Load(o Options) (*Config, []Note, error) {
	place := Locate(o)
	var src *source
	if place.Path != "" {
		var err error
		if src, err = readSource(place.Path); err != nil {
			return nil, nil, err
		}
	}
	return o.loadWithFolder(place, func(prepare func(*loader)) (*Config, []Note, error) {
		l := o.loader(place, src)
		if place.Path != "" {
			place.readDotenv(l)
		}
		prepare(l)
		cfg, notes, err := l.run()
		if err != nil || place.Named {
			return cfg, notes, err
		}
		if err := o.confirm(cfg, l); err != nil {
			return nil, notes, err
		}
		return cfg, notes, nil
	})
}

// Parse parses and validates a configuration that is not in a file, such as the
// options that a client sends. name replaces the file name in problems. The
// environment is used as in Load, but no .env is read.
func Parse(name string, data []byte, o Options) (*Config, []Note, error) {
	if len(data) > maxFile {
		return nil, nil, &Error{[]Problem{{File: name, Msg: fmt.Sprintf("is larger than %d MiB", maxFile>>20)}}}
	}
	src := &source{file: name, data: bytes.TrimPrefix(data, bom)}
	return o.loader(Place{Named: true, How: name}, src).run()
}

// confirm asks for trust in a file that was found, once for each content.
func (o Options) confirm(cfg *Config, l *loader) error {
	req := TrustRequest{Path: cfg.place.Path, Digest: l.state(), Starts: cfg.starts()}
	store := NewTrustStore(o.UserDir)
	known, err := store.Trusted(req)
	if err != nil || known {
		return err
	}
	if o.Trust == nil {
		return &UntrustedError{Request: req}
	}
	yes, err := o.Trust(req)
	if err != nil {
		return err
	}
	if !yes {
		return &UntrustedError{Request: req, Asked: true}
	}
	return store.Add(req)
}

// starts lists what the configuration would start or connect to, one line for
// each server.
func (c *Config) starts() []string {
	var lines []string
	for _, s := range c.Servers {
		if !s.Enabled {
			continue
		}
		what := s.URL
		if s.Command != "" {
			what = strings.Join(append([]string{s.Command}, s.Args...), " ")
		}
		lines = append(lines, s.Name+": "+what)
	}
	return lines
}

// loader loads a Config from one source.
type loader struct {
	o          Options
	place      Place
	src        *source // nil when there is no file
	env        *environment
	x          *expansion
	files      []string // files that were read or looked for
	parts      [][]byte // their names and contents
	problems   []Problem
	notes      []Note
	noted      map[string]int // index into notes
	count      map[string]int
	incomplete map[string]bool // keys of servers with a variable that is not set
}

func (o Options) loader(place Place, src *source) *loader {
	l := &loader{o: o, place: place, src: src, noted: map[string]int{}, count: map[string]int{}, incomplete: map[string]bool{},
		env: &environment{real: o.LookupEnv, inFile: map[string]string{}}}
	l.x = &expansion{env: l.env, home: o.Home}
	if place.Path != "" {
		l.addFile(place.Path, src, nil)
		dir := filepath.Dir(place.Path)
		if base := filepath.Base(dir); base == ".vscode" || base == ".cursor" {
			dir = filepath.Dir(dir)
		}
		l.x.workspace = dir
	} else {
		l.x.workspace = o.BaseDir
	}
	return l
}

// readDotenv reads the .env beside the file, if there is one.
func (l *loader) readDotenv(path string) {
	src, err := readSource(path)
	l.useDotenv(path, src, err)
}

// useDotenv uses the variables of a .env that was read or is to be written.
func (l *loader) useDotenv(path string, src *source, err error) {
	l.addFile(path, src, err)
	if err != nil {
		if _, serr := os.Stat(path); serr == nil {
			l.addErrors(err)
		}
		return
	}
	vars, problems := parseDotenv(src)
	if !l.place.Named { // the .env of an arbitrary project
		maps.DeleteFunc(vars, func(name, _ string) bool { return !allowedFromFolder(name) })
	}
	l.env.dotenv = vars
	l.problems = append(l.problems, problems...)
}

// open reads a file and records its content.
func (l *loader) open(path string) (*source, error) {
	src, err := readSource(path)
	l.addFile(path, src, err)
	return src, err
}

func (l *loader) addFile(path string, src *source, err error) {
	l.addParts(path, part(path, src, err))
}

func (l *loader) addParts(path string, parts [][]byte) {
	if path == "" {
		return // no file has this name
	}
	l.files, l.parts = append(l.files, path), append(l.parts, parts...)
	if l.o.onRead != nil {
		l.o.onRead(path, parts)
	}
}

// state returns a digest of everything that was read.
func (l *loader) state() string { return digest(l.parts...) }

// part returns the contribution of one file to a state.
func part(path string, src *source, err error) [][]byte {
	if err != nil {
		return [][]byte{[]byte(path), nil, []byte(err.Error())}
	}
	return [][]byte{[]byte(path), src.data}
}

// addErrors adds the problems of err.
func (l *loader) addErrors(err error) {
	if e, ok := errors.AsType[*Error](err); ok {
		l.problems = append(l.problems, e.Problems...)
		return
	}
	l.problems = append(l.problems, Problem{Msg: err.Error()})
}

// report adds a problem at a node.
func (l *loader) report(n *node, msg string) {
	l.problems = append(l.problems, l.problem(n, n.path, msg))
}

// reportUnset adds a problem about a variable without a value.
func (l *loader) reportUnset(n *node, name string) {
	l.report(n, fmt.Sprintf(unset, name))
}

func (l *loader) problem(n *node, key, msg string) Problem {
	if l.src == nil || n == nil || n.offset < 0 {
		p := Problem{Key: key, Msg: msg}
		if n != nil && n.source != "" && n.source != key {
			p.Msg = msg + " (" + strings.Trim(strings.TrimPrefix(n.source, key), " ()") + ")"
		}
		return p
	}
	return l.src.at(n.offset, key, msg)
}

// note adds a note, once for each key and message: repetitions are counted.
func (l *loader) note(key string, n *node, msg string) {
	id := key + "\x00" + msg
	l.count[id]++
	if i, ok := l.noted[id]; ok {
		l.notes[i].Msg = fmt.Sprintf("%s (in %d places)", msg, l.count[id])
		return
	}
	l.noted[id] = len(l.notes)
	l.notes = append(l.notes, l.problem(n, n.path, msg))
}

func (l *loader) run() (*Config, []Note, error) {
	cfg := Default()
	cfg.place, cfg.env, cfg.src = l.place, l.env, l.src
	d := &decoder{report: l.report, from: map[string]*node{}}
	cfg.from = d.from

	root := &node{kind: object}
	if l.src != nil {
		v, err := l.src.parse()
		if err != nil {
			return nil, l.notes, err
		}
		root = newTree(l.src, v, func(p Problem) { l.problems = append(l.problems, p) })
	}
	servers, rest := entries(root, l.report)
	normalizeTop(rest, l.x, l.report, l.note)
	l.x.expandTree(rest, l.report, l.reportUnset)

	base := l.serverDefaults(d)
	for _, e := range dropDuplicates(assignNames(servers, l.note), l.src, l.report) {
		l.server(cfg, d, e, base)
	}
	l.serverFromEnvironment(cfg, d, base)
	l.top(cfg, d, rest)
	l.override(cfg, d)
	cfg.Store.Path = l.path(cfg.Store.Path, l.dir())
	cfg.TLS.Cert, cfg.TLS.Key = l.path(cfg.TLS.Cert, l.dir()), l.path(cfg.TLS.Key, l.dir())
	l.validate(cfg, d)
	cfg.files, cfg.state = l.files, l.state()

	notes := sorted(l.notes)
	if len(l.problems) > 0 {
		return nil, notes, &Error{sorted(l.problems)}
	}
	return cfg, notes, nil
}

// top decodes everything except the servers.
func (l *loader) top(cfg *Config, d *decoder, rest *node) {
	fields := fieldsOf(reflect.TypeFor[Config]())
	v := reflect.ValueOf(cfg).Elem()
	for _, m := range rest.members {
		f, known := fields[m.name]
		switch {
		case m.name == "mcpServers": // null; entries has removed anything else
		case !known:
			names := slices.AppendSeq(slices.Clone(containers), maps.Keys(fields))
			slices.Sort(names)
			d.unknown(m, names)
		case m.name == "llm" && m.value.kind == array:
			for i, e := range m.value.elems {
				c := llm.DefaultConfig()
				d.decode(e, reflect.ValueOf(&c).Elem(), fmt.Sprintf("llm[%d]", i))
				cfg.LLM = append(cfg.LLM, c)
			}
		default:
			d.decode(m.value, v.FieldByIndex(f.Index), m.name)
		}
	}
}

// validate lets every package validate its own settings and adds positions to
// their problems.
func (l *loader) validate(cfg *Config, d *decoder) {
	for _, p := range setting.Problems(cfg.Validate()) {
		n, rest := nearestNode(d.from, p.Key)
		key := p.Key
		if n != nil {
			key = n.path + rest
		}
		msg := p.Msg
		if strings.HasPrefix(p.Key, "mcpServers") && strings.HasSuffix(p.Key, ".name") && n != nil {
			key = n.path
			if good := LegalName(strings.TrimSuffix(strings.TrimPrefix(p.Key, "mcpServers"), ".name")); good != "" {
				msg += fmt.Sprintf(", such as %q", good)
			}
		}
		if l.isIncomplete(p.Key) {
			continue // a consequence of the missing variable, which was reported
		}
		l.problems = append(l.problems, l.problem(n, key, msg))
	}
}

// isIncomplete reports whether a key belongs to a server with a variable that is
// not set.
func (l *loader) isIncomplete(key string) bool {
	for server := range l.incomplete {
		if key == server || strings.HasPrefix(key, server+".") {
			return true
		}
	}
	return false
}

// nearestNode returns the node of a setting or of its nearest ancestor, and the
// rest of the key.
func nearestNode(from map[string]*node, key string) (*node, string) {
	for k := key; k != ""; {
		if n, ok := from[k]; ok {
			return n, key[len(k):]
		}
		i := strings.LastIndexAny(k, ".[")
		if i < 0 {
			break
		}
		k = k[:i]
	}
	return nil, ""
}
