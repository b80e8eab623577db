package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces a file atomically: readers see the old content or the new
// one, even after a crash. An existing file keeps its permissions. The target
// of a symbolic link is replaced, not the link. A new file can only be read by
// its owner.
func WriteFile(path string, data []byte) error {
	mode := fs.FileMode(0o600)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replace(path, data, mode)
}

// writeSecrets is like WriteFile, but makes the file readable only by its
// owner, whatever its permissions were. A symbolic link to a target outside of
// the file's folder is refused: it may come from a repository or another user
// in order to redirect secrets.
func writeSecrets(path string, data []byte) error {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	file := filepath.Join(folder, filepath.Base(path))
	if target, err := filepath.EvalSymlinks(file); err == nil && target != file {
		if inside, err := filepath.Rel(folder, target); err != nil || !filepath.IsLocal(inside) {
			return fmt.Errorf("%s is a symbolic link to %s, outside of its folder; replace it with a file, or set the variables there yourself", path, target)
		}
		file = target
	}
	return replace(file, data, 0o600)
}

// replace atomically replaces the file or link at path with a new file.
func replace(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".junctor-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close() // harmless if it is already closed
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
