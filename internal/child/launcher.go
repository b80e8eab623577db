package child

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Spec describes a program to start.
type Spec struct {
	Name    string   // shown by ps for the keeper
	Command string   // a path, or a name looked up in the PATH of Env
	Args    []string // without the command itself
	Env     []string // the whole environment, as KEY=value; see [Environ]
	Dir     string   // the working directory; empty means this process's

	// OnStderr is called for every line that the program writes to stderr,
	// truncated and sanitized; it may be nil. It must not block for long.
	OnStderr func(line string)
}

// Launcher starts programs. The zero value is not usable; see [NewLauncher].
type Launcher struct {
	mu     sync.Mutex
	starts chan func() // run on the thread that starts programs; see fork
	closed bool
	system system
	hide   string // the folder that is hidden from programs
	self   string // this program, for which it stays visible
}

// NewLauncher returns a Launcher. It uses no resources until the first Start.
func NewLauncher() *Launcher { return &Launcher{} }

// ErrClosed is returned by Start after Close.
var ErrClosed = errors.New("the launcher is closed")

// Start starts a program and returns when it is running. The error explains
// what the user can do.
func (l *Launcher) Start(spec Spec) (*Process, error) {
	path, err := Look(spec.Command, spec.Dir, spec.Env)
	if err != nil {
		return nil, err
	}
	if spec.Dir != "" {
		if info, err := os.Stat(spec.Dir); err != nil || !info.IsDir() {
			return nil, &StartError{Command: spec.Command, Reason: "its working directory does not exist", Hint: "correct cwd, or create that folder", Err: err}
		}
	}
	return l.start(spec, path)
}

// Isolation returns how the descendants of this Launcher's programs are
// contained. It tries the methods if no program has been started yet.
func (l *Launcher) Isolation() Isolation {
	return l.system.isolation(l.fork)
}

// Close closes the Launcher. On Linux, programs that are still running are
// killed.
func (l *Launcher) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.starts != nil && !l.closed {
		close(l.starts)
	}
	l.closed = true
}

// fork starts cmd on the Launcher's own thread, which it creates on first use.
// The thread must live as long as the programs: the parent-death signal is sent
// when the thread that started them exits, not only when the process does.
func (l *Launcher) fork(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	if l.starts == nil {
		l.starts = make(chan func())
		go l.thread(l.starts)
	}
	l.starts <- func() { done <- cmd.Start() }
	l.mu.Unlock()
	return <-done
}

func (l *Launcher) start(spec Spec, path string) (*Process, error) {
	pipes, err := newPipes()
	if err != nil {
		return nil, &StartError{Command: spec.Command, Reason: "its pipes could not be created", Hint: "raise the limit of open files (ulimit -n)", Err: err}
	}
	command := func() *exec.Cmd {
		return &exec.Cmd{
			Path:   path,
			Args:   append([]string{spec.Command}, spec.Args...),
			Env:    append([]string{}, spec.Env...), // nil would mean our environment
			Dir:    spec.Dir,
			Stdin:  pipes.childIn,
			Stdout: pipes.childOut,
			Stderr: pipes.childErr,
		}
	}
	hide, reason := l.hidden(path, spec)
	cmd, held, err := l.system.start(command, spec.Name, hide, l.fork)
	pipes.closeChild()
	if err != nil {
		pipes.closeParent()
		if errors.Is(err, ErrClosed) {
			return nil, err
		}
		return nil, startError(spec.Command, err)
	}
	p := &Process{
		stdin:  pipes.in,
		stdout: pipes.out,
		stderr: newTail(spec.OnStderr),
		cmd:    cmd,
		held:   held,
		pid:    held.pid(),
		done:   make(chan struct{}),
		grace:  2 * time.Second,
	}
	if p.visible = reason; hide != "" && !held.hides() {
		p.visible = "the system does not allow the program its own mounts (isolation: " + string(held.isolation()) + ")"
	}
	go p.run(pipes.err)
	return p, nil
}

// pipes are the three pipes to a program, both ends of each.
type pipes struct {
	childIn, childOut, childErr *os.File
	in, out, err                *os.File
}

func newPipes() (*pipes, error) {
	p := new(pipes)
	var err error
	if p.childIn, p.in, err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.out, p.childOut, err = os.Pipe(); err != nil {
		p.closeChild()
		p.closeParent()
		return nil, err
	}
	if p.err, p.childErr, err = os.Pipe(); err != nil {
		p.closeChild()
		p.closeParent()
		return nil, err
	}
	return p, nil
}

func (p *pipes) closeChild()  { closeAll(p.childIn, p.childOut, p.childErr) }
func (p *pipes) closeParent() { closeAll(p.in, p.out, p.err) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
