package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"junctor/internal/llm"
)

// The .env of the working folder belongs to an arbitrary project. Its variables
// may be used by the configuration once a person has agreed. Those that would
// start a program by themselves, configure Junctor itself, or send keys,
// conversations or traces to another address are never used.

// allowedFromFolder reports whether a variable of the working folder's .env may
// be used.
func allowedFromFolder(name string) bool {
	return name != "MCP_SERVER_DIST" && name != "OLLAMA_HOST" && !strings.HasPrefix(name, "JUNCTOR_") && !strings.HasPrefix(name, "OTEL_") && !strings.HasSuffix(name, "_BASE_URL")
}

// folderDotenv returns the path of the .env in the folder, or "" if the
// configuration file is in the same folder, because it is then read as the .env
// beside the file.
func (o Options) folderDotenv(place Place, folder string) string {
	if folder == "" || place.Path != "" && filepath.Dir(place.Path) == filepath.Clean(folder) {
		return ""
	}
	return filepath.Join(folder, ".env")
}

// loadWithFolder loads a configuration with the variables of the working folder,
// or without them if one of them is used and they are not trusted. Variables
// that the load does not use are dropped, because nobody is asked about them.
func (o Options) loadWithFolder(place Place, load func(prepare func(*loader)) (*Config, []Note, error)) (*Config, []Note, error) {
	path := o.folderDotenv(place, o.WorkDir)
	vars, part := readFolderDotenv(path)
	if len(vars) == 0 {
		cfg, notes, err := load(func(*loader) {})
		return cfg, append(notes, o.ignoredDotenv(place)...), err
	}
	cfg, notes, err := load(func(l *loader) { l.addFolder(path, vars, part) })
	if err != nil { // perhaps because of these variables
		if without, notes, err := load(func(*loader) {}); err == nil {
			return without, append(notes, Note{File: path, Msg: "is ignored, because the configuration is invalid with it"}), nil
		}
		return cfg, notes, err
	}
	// Look up the keys of models, that of a local one included.
	llm.Choose(cfg.LLM, func(name string) string { v, _ := cfg.Lookup(name); return v }, func(string) []string { return nil })
	used := slices.Sorted(maps.Keys(cfg.env.ofFolder))
	maps.DeleteFunc(cfg.env.folder, func(name, _ string) bool { return !cfg.env.ofFolder[name] })
	cfg.env.ofFolder = nil
	if len(used) == 0 {
		return cfg, notes, nil
	}
	yes, err := o.trustVariables(TrustRequest{Path: path, Digest: digest(part...), Variables: used})
	if err != nil || yes {
		return cfg, notes, err
	}
	cfg, notes, err = load(func(*loader) {})
	verb := "is"
	if len(used) > 1 {
		verb = "are"
	}
	note := Note{File: path, Msg: fmt.Sprintf("sets %s, which %s not used: the file was found in the current folder and was not confirmed; run junctor in a terminal to confirm it, or export the variables", strings.Join(used, ", "), verb)}
	return cfg, append(notes, note), err
}

// addFolder adds the variables of the working folder.
func (l *loader) addFolder(path string, vars map[string]string, part [][]byte) {
	l.addParts(path, part)
	l.env.folder, l.env.ofFolder = vars, map[string]bool{}
}

// trustVariables asks, once for each content, whether variables may be used.
func (o Options) trustVariables(r TrustRequest) (bool, error) {
	store := NewTrustStore(o.UserDir)
	known, err := store.Trusted(r)
	if err != nil || known {
		return known, err
	}
	refused := r
	refused.Digest = "no " + r.Digest
	if known, err = store.Trusted(refused); err != nil || known || o.Trust == nil {
		return false, err
	}
	yes, err := o.Trust(r)
	if err != nil {
		return false, err
	}
	if !yes {
		r = refused
	}
	return yes, store.Add(r)
}

// readFolderDotenv returns the variables of a .env that may be used, and the
// contribution of the file to a state. Invalid lines are ignored, because the
// file is not ours.
func readFolderDotenv(path string) (map[string]string, [][]byte) {
	if path == "" {
		return nil, nil
	}
	src, err := readSource(path)
	if err != nil {
		return nil, nil
	}
	vars, _ := parseDotenv(src)
	maps.DeleteFunc(vars, func(name, _ string) bool { return !allowedFromFolder(name) })
	return vars, part(path, src, nil)
}

// ignoredDotenv returns a note about the .env in the folder in which a client
// started the program, because it is not read.
func (o Options) ignoredDotenv(place Place) []Note {
	if o.WorkDir != "" {
		return nil
	}
	path := o.folderDotenv(place, o.BaseDir)
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []Note{{File: path, Msg: "is not read: clients start this program in whatever folder is open; put variables into .env beside the configuration file"}}
}
