package child

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestEnviron(t *testing.T) {
	host := []string{"PATH=/bin", "HOME=/home/a", "LC_ALL=C", "SECRET=x", "Path=mixed", "=C:=C:\\", "broken"}
	for name, tt := range map[string]struct {
		inherit []string
		extra   map[string]string
		fold    bool
		want    []string
	}{
		"names and globs":  {inherit: []string{"PATH", "LC_*"}, want: []string{"LC_ALL=C", "PATH=/bin"}},
		"everything":       {inherit: []string{"*"}, want: []string{"HOME=/home/a", "LC_ALL=C", "PATH=/bin", "Path=mixed", "SECRET=x"}},
		"nothing":          {want: []string{}},
		"extra wins":       {inherit: []string{"HOME"}, extra: map[string]string{"HOME": "/tmp", "A": "1=2"}, want: []string{"A=1=2", "HOME=/tmp"}},
		"Windows: no case": {inherit: []string{"path", "home"}, extra: map[string]string{"Home": "/tmp"}, fold: true, want: []string{"Home=/tmp", "Path=mixed"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := environ(host, tt.inherit, tt.extra, tt.fold)
			if !slices.Equal(got, tt.want) {
				t.Errorf("environ = %q, want %q", got, tt.want)
			}
		})
	}
	if got := Environ([]string{"A=1"}, []string{"A"}, nil); !slices.Equal(got, []string{"A=1"}) {
		t.Errorf("Environ = %q", got)
	}
}

func TestStartErrorsExplainWhatToDo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the files are those of Unix")
	}
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("plain", "hello", 0o644)
	write("orphan", "#!/does/not/exist\n", 0o755)
	write("garbage", "\x7fELFgarbage", 0o755)
	good := write("good", "#!/bin/sh\nexit 0\n", 0o755)
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "closed") // to all except root
	if err := os.Mkdir(closed, 0); err != nil {
		t.Fatal(err)
	}
	path := "PATH=relative:" + closed + ":" + dir
	for name, tt := range map[string]struct {
		spec Spec
		want []string // parts of the message; none means success
		is   error
	}{
		"nothing given":     {spec: Spec{}, want: []string{"no command", "set command"}},
		"not in PATH":       {spec: Spec{Command: "no-such-program", Env: []string{path}}, want: []string{`"no-such-program"`, "not found in PATH", "install it", "full path"}, is: fs.ErrNotExist},
		"well known":        {spec: Spec{Command: "uvx", Env: []string{path}}, want: []string{"not found", "docs.astral.sh/uv"}, is: fs.ErrNotExist},
		"with extension":    {spec: Spec{Command: "npx.cmd", Env: []string{path}}, want: []string{"Node.js"}, is: fs.ErrNotExist},
		"in PATH, no right": {spec: Spec{Command: "plain", Env: []string{path}}, want: []string{"may not be executed", "chmod +x"}, is: fs.ErrPermission},
		"path, missing":     {spec: Spec{Command: "./nothing", Dir: dir}, want: []string{"does not exist", "correct the path"}, is: fs.ErrNotExist},
		"path, no right":    {spec: Spec{Command: filepath.Join(dir, "plain")}, want: []string{"chmod +x"}, is: fs.ErrPermission},
		"a folder":          {spec: Spec{Command: filepath.Join(dir, "folder")}, want: []string{"is a folder"}, is: syscall.EISDIR},
		"no interpreter":    {spec: Spec{Command: filepath.Join(dir, "orphan")}, want: []string{"interpreter"}, is: fs.ErrNotExist},
		"no program":        {spec: Spec{Command: filepath.Join(dir, "garbage")}, want: []string{"not a program for this machine"}, is: syscall.ENOEXEC},
		"no such cwd":       {spec: Spec{Command: good, Dir: filepath.Join(dir, "none")}, want: []string{"working directory", "cwd"}, is: fs.ErrNotExist},
		"too long":          {spec: Spec{Command: good, Args: []string{strings.Repeat("x", 4<<20)}}, want: []string{"too long"}, is: syscall.E2BIG},
		"good, by PATH":     {spec: Spec{Command: "good", Env: []string{path}}},
		"good, relative":    {spec: Spec{Command: "./good", Dir: dir}},
		"good, default":     {spec: Spec{Command: "sh", Args: []string{"-c", "exit 0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLauncher()
			t.Cleanup(l.Close)
			p, err := l.Start(tt.spec)
			if tt.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				<-p.Done()
				if got, want := p.Err().Error(), "exited with code 0"; got != want {
					t.Errorf("Err() = %q, want %q", got, want)
				}
				return
			}
			if err == nil {
				p.Kill()
				t.Fatal("Start succeeded")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %q is not %v", err, tt.is)
			}
			e, ok := errors.AsType[*StartError](err)
			if !ok || e.NotFound() != errors.Is(tt.is, fs.ErrNotExist) {
				t.Errorf("error %#v: NotFound is wrong", err)
			}
		})
	}
	for errno, want := range map[syscall.Errno]string{syscall.EAGAIN: "cannot create another process", syscall.EIO: "refused"} {
		if err := startError("x", errno); !strings.Contains(err.Error(), want) {
			t.Errorf("startError(%v) = %q, want %q in it", errno, err, want)
		}
	}
}

func TestEnvironmentAndFolderReachTheProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := NewLauncher()
	t.Cleanup(l.Close)
	p, err := l.Start(Spec{Command: "sh", Args: []string{"-c", `pwd; echo "$A|$PATH"; read x; echo "$x" >&2; exit 3`},
		Env: []string{"PATH=/usr/bin:/bin", "A=1"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if p.Err() != nil {
		t.Errorf("Err() = %v while running", p.Err())
	}
	if _, err := p.Write([]byte("to stderr\n")); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	buf := make([]byte, 1<<10)
	n, _ := p.Read(buf)
	if got, want := string(buf[:n]), dir+"\n1|/usr/bin:/bin\n"; got != want {
		t.Errorf("program printed %q, want %q", got, want)
	}
	if got := p.Stderr(); !slices.Equal(got, []string{"to stderr"}) {
		t.Errorf("Stderr() = %q", got)
	}
	e, ok := errors.AsType[*ExitError](p.Err())
	if !ok || e.Code != 3 || e.Error() != "exited with code 3" {
		t.Errorf("Err() = %v", p.Err())
	}
	p.Stop(t.Context()) // may be called again
}

func TestKillEndsAtOnce(t *testing.T) {
	l := NewLauncher()
	t.Cleanup(l.Close)
	p, err := l.Start(Spec{Command: "sleep", Args: []string{"1000"}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.PID() <= 0 || p.Isolation() == "" || p.Isolation() != l.Isolation() {
		t.Errorf("pid %d, isolation %q, of the launcher %q", p.PID(), p.Isolation(), l.Isolation())
	}
	p.Kill()
	if got := p.Err(); got == nil || !strings.Contains(got.Error(), "kill") {
		t.Errorf("Err() = %v, want killed", got)
	}
}

func TestExitErrorText(t *testing.T) {
	for want, e := range map[string]ExitError{
		"exited with code 2":                {Code: 2},
		"exited with code 143 (terminated)": {Code: 143, Signal: "terminated"},
		"ended by killed":                   {Code: -1, Signal: "killed"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%+v says %q, want %q", e, got, want)
		}
	}
	if err := exitError(nil, fs.ErrClosed); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("exitError without a state: %v", err)
	}
}

func TestTailKeepsLastLines(t *testing.T) {
	for name, tt := range map[string]struct {
		in   []string
		want []string
	}{
		"lines over writes": {in: []string{"a\nb", "c\n\n", "open"}, want: []string{"a", "bc", "open"}},
		"colours and bells": {in: []string{"\x1b[31mred\x1b[0m\x07\tx\r\n\x1bcreset\x1b", "[1"}, want: []string{"red x", "reset"}},
		"not UTF-8":         {in: []string{"a\xffb\n"}, want: []string{"a\uFFFDb"}},
		"cut":               {in: []string{strings.Repeat("x", tailLine), "yz\nnext\n"}, want: []string{strings.Repeat("x", tailLine) + "…", "next"}},
	} {
		t.Run(name, func(t *testing.T) {
			tl := newTail(nil)
			for _, s := range tt.in {
				tl.write([]byte(s))
			}
			if got := tl.lines(); !slices.Equal(got, tt.want) {
				t.Errorf("lines = %q, want %q", got, tt.want)
			}
		})
	}
	tl := newTail(nil)
	tl.readFrom(strings.NewReader(strings.Repeat("old\n", 100) + strings.Repeat("new\n", tailLines)))
	if got := tl.lines(); len(got) != tailLines || got[0] != "new" {
		t.Errorf("%d lines, first %q", len(got), got[0])
	}
}

func TestBatchFileCommandLine(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"plain":                           {args: []string{"-y", "pkg"}, want: `cmd.exe /d /s /c "^"C:\npx.cmd^" ^^^"-y^^^" ^^^"pkg^^^""`},
		"a command hidden in an argument": {args: []string{"a&calc"}, want: `cmd.exe /d /s /c "^"C:\npx.cmd^" ^^^"a^^^&calc^^^""`},
		"quotes and backslashes":          {args: []string{`x"y\`}, want: `cmd.exe /d /s /c "^"C:\npx.cmd^" ^^^"x\^^^"y\\^^^""`},
		"line break":                      {args: []string{"a\nb"}, want: `cmd.exe /d /s /c "^"C:\npx.cmd^" ^^^"a^ b^^^""`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := batchLine(`C:\npx.cmd`, tt.args); got != tt.want {
				t.Errorf("batchLine = %s\nwant        %s", got, tt.want)
			}
		})
	}
	if !isBatch(`C:\x\NPX.CMD`) || isBatch("npx.exe") {
		t.Error("isBatch is wrong")
	}
}

func TestWithExtensions(t *testing.T) {
	for name, tt := range map[string]struct {
		command, pathext string
		want             []string
	}{
		"npx":        {command: "npx", pathext: ".EXE;;.CMD", want: []string{".exe", ".cmd"}},
		"has it":     {command: "npx.cmd", pathext: ".EXE;.CMD", want: []string{""}},
		"dot":        {command: "my.tool", pathext: ".EXE", want: []string{".exe"}},
		"no PATHEXT": {command: "npx", want: []string{".com", ".exe", ".bat", ".cmd"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := withExtensions(tt.command, tt.pathext); !slices.Equal(got, tt.want) {
				t.Errorf("withExtensions = %q, want %q", got, tt.want)
			}
		})
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "npx.cmd"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := executable(filepath.Join(dir, "npx"), []string{".exe", ".cmd"}); err != nil || !strings.HasSuffix(got, "npx.cmd") {
		t.Errorf("executable = %q, %v", got, err)
	}
}

func TestConcurrentStarts(t *testing.T) {
	l := NewLauncher()
	t.Cleanup(l.Close)
	done := make(chan error)
	const n = 20
	for range n {
		go func() {
			p, err := l.Start(Spec{Command: "cat", Env: []string{"PATH=/usr/bin:/bin"}})
			if err == nil {
				p.grace = time.Hour // a slow start must not lead to a kill
				p.Stop(t.Context())
				if got := p.Err().Error(); got != "exited with code 0" {
					err = errors.New(got)
				}
			}
			done <- err
		}()
	}
	for range n {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("a program did not end")
		}
	}
}

func TestProgramName(t *testing.T) {
	for in, want := range map[string]string{"node": "node", "/usr/bin/npx": "npx", `C:\Tools\NPX.CMD`: "npx", "uvx.exe": "uvx", "run.bat": "run", "a.b": "a.b"} {
		if got := ProgramName(in); got != want {
			t.Errorf("ProgramName(%q) = %q, want %q", in, got, want)
		}
	}
}
