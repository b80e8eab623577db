package store

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
)

// NewestMigration returns the highest version of the files in the folder
// migrations. The name of a file begins with its version.
func NewestMigration(files embed.FS) (n int64, err error) {
	list, err := files.ReadDir("migrations")
	for _, f := range list {
		number, _, _ := strings.Cut(f.Name(), "_")
		v, perr := strconv.ParseInt(number, 10, 64)
		if perr != nil {
			return 0, fmt.Errorf("migration %s: %w", f.Name(), perr)
		}
		n = max(n, v)
	}
	return n, err
}
