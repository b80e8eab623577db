package child

import (
	"path/filepath"
	"strings"
)

// isBatch reports whether a file is a batch file of Windows.
func isBatch(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".cmd" || ext == ".bat"
}

// batchLine returns the command line with which cmd.exe runs a batch file. The
// arguments are escaped, so that cmd.exe does not interpret them.
func batchLine(path string, args []string) string {
	line := escapeCmd(quote(path))
	for _, arg := range args {
		// Twice: cmd.exe parses the line once, and batch files created by
		// npm pass it to a second command.
		line += " " + escapeCmd(escapeCmd(quote(arg)))
	}
	return `cmd.exe /d /s /c "` + line + `"`
}

// quote quotes an argument by the rules of the C runtime.
func quote(arg string) string {
	var b strings.Builder
	b.WriteByte('"')
	slashes := 0
	for i := range len(arg) {
		switch c := arg[i]; c {
		case '\\':
			slashes++
			continue
		case '"':
			b.WriteString(strings.Repeat(`\`, 2*slashes+1))
		default:
			b.WriteString(strings.Repeat(`\`, slashes))
		}
		slashes = 0
		b.WriteByte(arg[i])
	}
	b.WriteString(strings.Repeat(`\`, 2*slashes))
	b.WriteByte('"')
	return b.String()
}

// escapeCmd escapes every character that is special to cmd.exe. A line break
// cannot be escaped and becomes a space.
func escapeCmd(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; c {
		case '\r', '\n':
			b.WriteByte(' ')
			continue
		case '(', ')', '[', ']', '%', '!', '^', '"', '`', '<', '>', '&', '|', ';', ',', ' ', '*', '?':
			b.WriteByte('^')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// withExtensions returns the extensions in PATHEXT, the Windows variable, to try
// for a command. It returns only "" if the command already has one of them.
func withExtensions(command, pathext string) []string {
	if pathext == "" {
		pathext = ".COM;.EXE;.BAT;.CMD"
	}
	var exts []string
	own := filepath.Ext(command)
	for ext := range strings.SplitSeq(pathext, ";") {
		if ext == "" {
			continue
		}
		if strings.EqualFold(ext, own) {
			return []string{""}
		}
		exts = append(exts, strings.ToLower(ext))
	}
	return exts
}
