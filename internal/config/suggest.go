package config

import (
	"fmt"

	"junctor/internal/catalog"
)

// suggest returns "; did you mean …?" with the nearest of the names, or "" if
// none is similar.
func suggest(name string, names []string) string {
	if near := catalog.Nearest(name, names, 1); len(near) > 0 {
		return fmt.Sprintf("; did you mean %q?", near[0])
	}
	return ""
}
