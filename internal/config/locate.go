package config

import (
	"os"
	"path/filepath"
)

// fileNames are the names of configuration files in order of preference.
var fileNames = []string{"junctor.json", "mcp.json"}

// Place is the location of the configuration file.
type Place struct {
	// Path is the path of the file; empty if there is none.
	Path string `json:"path"`
	// Named is true if the user named the file or it is in the user's own
	// folder, and false if it was found in the working folder.
	Named bool `json:"named"`
	// How describes how the file was found.
	How string `json:"how"`
	// New is the path at which a new file would be created in the user's own
	// folder. Absent if the file that Path names is already the user's choice.
	New string `json:"new,omitempty"`
}

// Locate finds the file, in this order: named by flag, by JUNCTOR_CONFIG or
// MCP_JSON_PATH, in the working folder or named by its .env, in the user's
// folder. It opens no file except the .env of the working folder.
func Locate(o Options) Place {
	if o.File != "" {
		return Place{Path: o.abs(o.File), Named: true, How: "--config"}
	}
	for _, name := range []string{"JUNCTOR_CONFIG", "MCP_JSON_PATH"} {
		if v, ok := o.lookup(name); ok && v != "" {
			return Place{Path: o.abs(v), Named: true, How: "$" + name}
		}
	}
	own := ""
	if o.UserDir != "" {
		own = filepath.Join(o.UserDir, "junctor", fileNames[0])
	}
	if o.WorkDir != "" {
		for _, name := range fileNames {
			path := filepath.Join(o.WorkDir, name)
			// The name decides, even if it is a folder: reading it reports that.
			if _, err := os.Lstat(path); err == nil {
				return Place{Path: path, How: "found in this folder", New: own}
			}
		}
		if path := o.namedInDotenv(); path != "" {
			return Place{Path: path, How: "MCP_JSON_PATH in .env of this folder", New: own}
		}
	}
	if own != "" {
		if _, err := os.Lstat(own); err == nil {
			return Place{Path: own, Named: true, How: "the user's configuration folder"}
		}
	}
	return Place{Named: true, How: "no file", New: own}
}

// namedInDotenv returns the existing file that the working folder's .env names,
// or "". The file must still be trusted, because the .env may not be the
// user's.
func (o Options) namedInDotenv() string {
	src, err := readSource(filepath.Join(o.WorkDir, ".env"))
	if err != nil {
		return ""
	}
	vars, _ := parseDotenv(src)
	if v := vars["MCP_JSON_PATH"]; v != "" {
		path := o.abs(v)
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return ""
}

func (o Options) lookup(name string) (string, bool) {
	if o.LookupEnv == nil {
		return "", false
	}
	return o.LookupEnv(name)
}

// abs resolves a path against BaseDir, or else WorkDir. BaseDir is also set for
// the faces that do not search the working folder.
func (o Options) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	base := o.BaseDir
	if base == "" {
		base = o.WorkDir
	}
	return filepath.Join(base, path)
}
