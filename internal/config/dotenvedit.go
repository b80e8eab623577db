package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// EditDotenv replaces the text of the .env beside the file that Apply would
// edit with the result of edit. It holds the lock of both files meanwhile, so
// that edit must neither edit a configuration nor ask for trust. A file that
// was found rather than named must be trusted, and remains so.
func EditDotenv(o Options, edit func(text []byte) ([]byte, error)) error {
	place := o.editPlace()
	if place.Path == "" {
		return errNoPlace
	}
	path := place.dotenv()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	unlock, err := o.lock(place)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	changed, err := edit(old)
	if err != nil || bytes.Equal(old, changed) {
		return err
	}
	if !place.Named {
		content, err := os.ReadFile(place.Path)
		if err == nil {
			err = o.updateTrust(place, content, func(l *loader) {
				l.useDotenv(path, &source{file: path, data: bytes.TrimPrefix(changed, bom)}, nil)
			})
		}
		if err != nil {
			return err
		}
	}
	if err := writeSecrets(path, changed); err != nil {
		return fmt.Errorf("write the secrets: %w", err)
	}
	return nil
}
