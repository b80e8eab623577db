package store

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
)

// NewestMigration returns the highest version among the files of the folder
// migrations, whose names begin with it.
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
