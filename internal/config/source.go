package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"junctor/internal/jsonedit"
	"junctor/internal/rawjson"
)

// maxFile is the maximum size of the configuration file. The largest known ones
// have a few hundred kilobytes.
const maxFile = 4 << 20

// maxDepth is the maximum nesting depth of the file; the parser is recursive.
const maxDepth = 64

// source is one file's text.
type source struct {
	file string
	data []byte // without byte order mark
}

var bom = []byte("\xef\xbb\xbf")

// readSource reads a file of at most maxFile bytes. The error explains why the
// file cannot be used.
func readSource(path string) (*source, error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{[]Problem{{File: path, Msg: "there is no such file"}}}
	case errors.Is(err, fs.ErrPermission):
		return nil, &Error{[]Problem{{File: path, Msg: "is not readable by this user; check its permissions"}}}
	case err != nil:
		return nil, &Error{[]Problem{{File: path, Msg: "cannot be read: " + withoutPath(err)}}}
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		msg := "is a folder; name the file in it"
		for _, name := range fileNames {
			if _, err := os.Stat(filepath.Join(path, name)); err == nil {
				msg += ": " + filepath.Join(path, name)
				break
			}
		}
		return nil, &Error{[]Problem{{File: path, Msg: msg}}}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, &Error{[]Problem{{File: path, Msg: "cannot be read: " + withoutPath(err)}}}
	}
	if len(data) > maxFile {
		return nil, &Error{[]Problem{{File: path, Msg: fmt.Sprintf("is larger than %d MiB, the limit for a configuration file", maxFile>>20)}}}
	}
	return &source{file: path, data: bytes.TrimPrefix(data, bom)}, nil
}

// withoutPath returns the text of a file system error without the operation and
// the path, because the problem already names the file.
func withoutPath(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// at returns a problem at an offset of the file.
func (s *source) at(offset int, key, msg string) Problem {
	offset = max(0, min(offset, len(s.data)))
	line := 1 + bytes.Count(s.data[:offset], []byte("\n"))
	start := bytes.LastIndexByte(s.data[:offset], '\n') + 1
	return Problem{File: s.file, Line: line, Column: 1 + utf8.RuneCount(s.data[start:offset]), Key: key, Msg: msg}
}

// parse parses the text into hujson's tree, which keeps comments and positions.
func (s *source) parse() (hujson.Value, error) {
	fail := func(p Problem) (hujson.Value, error) { return hujson.Value{}, &Error{[]Problem{p}} }
	if len(bytes.TrimSpace(s.data)) == 0 {
		return fail(Problem{File: s.file, Msg: `is empty; the minimum is {"mcpServers": {}}`})
	}
	if bytes.HasPrefix(s.data, []byte("\xff\xfe")) || bytes.HasPrefix(s.data, []byte("\xfe\xff")) {
		return fail(Problem{File: s.file, Msg: "is UTF-16; save it as UTF-8"})
	}
	if i := rawjson.InvalidUTF8(s.data); i >= 0 {
		return fail(s.at(i, "", "is not UTF-8 text"))
	}
	if i := jsonedit.TooDeep(s.data, maxDepth); i >= 0 {
		return fail(s.at(i, "", fmt.Sprintf("is nested deeper than %d levels", maxDepth)))
	}
	v, err := hujson.Parse(s.data)
	if err != nil {
		return fail(s.syntax(err))
	}
	return v, nil
}

var hujsonPlace = regexp.MustCompile(`^hujson: line (\d+), column (\d+): (?s:(.*))$`)

// syntax converts hujson's error into a problem, with a hint for common
// mistakes.
func (s *source) syntax(err error) Problem {
	m := hujsonPlace.FindStringSubmatch(err.Error())
	if m == nil {
		return Problem{File: s.file, Msg: "is not JSON: " + err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	col, _ := strconv.Atoi(m[2])
	msg := "is not JSON: " + strings.TrimPrefix(m[3], "parsing value: ")
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		msg = "is not JSON: unexpected end of file; a bracket, brace or quote is not closed"
	case strings.Contains(m[3], "after object value") || strings.Contains(m[3], "after array value"):
		msg += "; a comma may be missing before it"
	case strings.Contains(m[3], "start of object name"):
		msg += "; names are written in double quotes"
	case strings.Contains(m[3], `'\''`):
		msg += "; text is written in double quotes"
	}
	p := Problem{File: s.file, Line: line, Column: col, Msg: msg}
	// hujson counts bytes, a problem has characters.
	if off, ok := offsetOf(s.data, line, col); ok {
		p = s.at(off, "", msg)
	}
	return p
}

func offsetOf(data []byte, line, col int) (int, bool) {
	off := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(data[off:], '\n')
		if i < 0 {
			return 0, false
		}
		off += i + 1
	}
	off += col - 1
	return off, off <= len(data)
}
