package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// StartError reports why a program could not be started, and what to do.
type StartError struct {
	Command string
	Reason  string // continues "the program …": "is not installed"
	Hint    string
	Err     error
}

// Error returns the message without paths of this machine, so that it may be
// shown to anyone.
func (e *StartError) Error() string {
	if e.Command == "" {
		return e.Reason + "; " + e.Hint
	}
	return fmt.Sprintf("start %q: %s; %s", filepath.Base(e.Command), e.Reason, e.Hint)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// NotFound reports whether the program does not exist.
func (e *StartError) NotFound() bool { return errors.Is(e.Err, fs.ErrNotExist) }

// packages contains install hints for the programs that start most MCP servers.
var packages = map[string]string{
	"npx":     "install Node.js (https://nodejs.org)",
	"node":    "install Node.js (https://nodejs.org)",
	"npm":     "install Node.js (https://nodejs.org)",
	"uvx":     "install uv (https://docs.astral.sh/uv)",
	"uv":      "install uv (https://docs.astral.sh/uv)",
	"python":  "install Python (https://www.python.org), or write python3",
	"python3": "install Python (https://www.python.org)",
	"pipx":    "install pipx (https://pipx.pypa.io)",
	"docker":  "install Docker (https://docs.docker.com/get-docker)",
	"podman":  "install Podman (https://podman.io)",
	"bunx":    "install Bun (https://bun.sh)",
	"bun":     "install Bun (https://bun.sh)",
	"deno":    "install Deno (https://deno.com)",
	"go":      "install Go (https://go.dev)",
	"dotnet":  "install .NET (https://dotnet.microsoft.com)",
	"java":    "install a Java runtime",
}

// ProgramName returns a command in lower case without folder and extension: npx
// for C:\nodejs\npx.cmd.
func ProgramName(command string) string {
	name := strings.ToLower(filepath.Base(strings.ReplaceAll(command, `\`, "/")))
	for _, ext := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// Look returns the file that a program would be started from. A name without a
// slash is looked up in the PATH of env; a relative path is relative to dir, the
// program's working directory. An error is a [*StartError].
func Look(command, dir string, env []string) (string, error) {
	if command == "" {
		return "", &StartError{Reason: "no command is given", Hint: "set command to the program that speaks MCP on stdio", Err: fs.ErrInvalid}
	}
	exts := extensions(command, lookup(env, "PATHEXT"))
	if strings.ContainsAny(command, pathSeparators) {
		if !filepath.IsAbs(command) && dir != "" {
			command = filepath.Join(dir, command)
		}
		path, err := executable(command, exts)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return "", startError(command, err)
		}
		return path, nil
	}
	path := lookup(env, "PATH")
	if path == "" {
		path = defaultPath
	}
	denied := false
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue // do not run programs from the current directory
		}
		found, err := executable(filepath.Join(folder, command), exts)
		if err == nil {
			return found, nil
		}
		// A folder that may not be entered (a [fs.PathError]) is skipped, as shells do.
		denied = denied || err == fs.ErrPermission
	}
	if denied {
		return "", startError(command, fs.ErrPermission)
	}
	hint := packages[strings.TrimSuffix(command, filepath.Ext(command))]
	if hint == "" {
		hint = "install it"
	}
	return "", &StartError{
		Command: command,
		Reason:  "the command was not found in PATH",
		Hint:    hint + ", or give its full path in command, or add its folder to PATH in env",
		Err:     fs.ErrNotExist,
	}
}

// executable returns path with the first of the extensions for which an
// executable file exists. Its error is [fs.ErrPermission] itself if there is a
// file that is not executable.
func executable(path string, exts []string) (string, error) {
	err := error(fs.ErrNotExist)
	for _, ext := range exts {
		info, statErr := os.Stat(path + ext)
		switch {
		case statErr != nil:
			if errors.Is(statErr, fs.ErrPermission) {
				err = statErr
			}
		case info.IsDir():
			err = syscall.EISDIR
		case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
			err = fs.ErrPermission
		default:
			return path + ext, nil
		}
	}
	return "", err
}

// startError explains why the system refused to start a program.
func startError(command string, err error) error {
	e := &StartError{Command: command, Err: err}
	switch {
	case errors.Is(err, syscall.EISDIR):
		e.Reason, e.Hint = "it is a folder, not a program", "name the program inside it"
	case errors.Is(err, fs.ErrNotExist):
		e.Reason, e.Hint = "the file, or the interpreter that its first line names, does not exist", "correct the path in command"
	case errors.Is(err, fs.ErrPermission):
		e.Reason, e.Hint = "the file may not be executed", "make it executable (chmod +x), or put its interpreter into command and the file into args"
	case errors.Is(err, syscall.ENOEXEC):
		e.Reason, e.Hint = "the file is not a program for this machine", "put its interpreter into command and the file into args, or install the build for this system"
	case errors.Is(err, syscall.E2BIG):
		e.Reason, e.Hint = "its arguments and environment are too long", "shorten args and env, or narrow inheritEnv"
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		e.Reason, e.Hint = "the system cannot create another process", "raise the limits of processes and open files (ulimit -u, -n), or disable some servers"
	default:
		e.Reason, e.Hint = "the system refused: "+err.Error(), "check that the command can be started from a shell"
	}
	return e
}
