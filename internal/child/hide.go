package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// HideFolder makes the folder appear empty to programs if the system allows it,
// unless they have files in it; see [Process.Visible]. It stays visible to
// another instance of this program, which stores its files there. HideFolder
// must be called before the first Start.
func (l *Launcher) HideFolder(dir string) {
	l.hide = dir
	l.self, _ = os.Executable() // an empty path matches no program
}

// hidden returns the folder to hide from a program, or why it stays visible.
func (l *Launcher) hidden(path string, spec Spec) (folder, reason string) {
	if l.hide == "" {
		return "", ""
	}
	hide, err := filepath.Abs(l.hide)
	if err != nil {
		return "", err.Error()
	}
	folder, err = filepath.EvalSymlinks(hide)
	if err != nil || folder == string(filepath.Separator) {
		return "", "there is no such folder"
	}
	if sameFile(path, l.self) {
		return "", "it is this program, which keeps its files there"
	}
	for _, name := range []string{hide, folder} {
		if reason := visible(name, path, spec); reason != "" {
			return "", reason
		}
	}
	return folder, ""
}

// visible returns why the folder must stay visible to a program, because it
// contains files of the program, or "" if the folder can be hidden.
func visible(folder, path string, spec Spec) string {
	dir := spec.Dir
	if dir == "" {
		dir, _ = os.Getwd() // an empty path is not inside
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	command := path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		command = resolved
	}
	switch {
	case mentions(dir, folder):
		return "its working directory is inside"
	case mentions(command, folder), mentions(path, folder):
		return "its command is inside"
	}
	for _, arg := range spec.Args {
		if mentions(arg, folder) {
			return "its arguments name it"
		}
	}
	for _, v := range spec.Env {
		if name, value, _ := strings.Cut(v, "="); mentions(value, folder) {
			return fmt.Sprintf("its environment variable %s names it", name)
		}
	}
	return ""
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// mentions reports whether text contains the path of folder or of something
// inside it.
func mentions(text, folder string) bool {
	for {
		_, after, found := strings.Cut(text, folder)
		if !found {
			return false
		}
		if after == "" || !isNameByte(after[0]) {
			return true
		}
		text = after
	}
}

// isNameByte reports whether b can be part of a file name.
func isNameByte(b byte) bool {
	return b >= 0x80 || b == '-' || b == '_' || b == '.' ||
		'0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
