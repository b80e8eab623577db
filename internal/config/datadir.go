package config

import (
	"fmt"
	"os"
	"path/filepath"
)

// DataDir returns Junctor's data folder in the place that is usual on the
// system.
func DataDir(goos string, lookup func(string) (string, bool), home string) string {
	if dir, ok := lookup("XDG_DATA_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "junctor")
	}
	switch goos {
	case "windows":
		if dir, ok := lookup("LOCALAPPDATA"); ok && dir != "" {
			return filepath.Join(dir, "junctor")
		}
	case "darwin":
		if home != "" {
			return filepath.Join(home, "Library", "Application Support", "junctor")
		}
	}
	if home == "" {
		return filepath.Join(os.TempDir(), fmt.Sprintf("junctor-%d", os.Getuid()))
	}
	return filepath.Join(home, ".local", "share", "junctor")
}
