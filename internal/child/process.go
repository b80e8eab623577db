package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// forker starts a command on the thread that programs are bound to.
type forker func(*exec.Cmd) error

// processGroup is one program with its descendants, as contained by the system.
type processGroup interface {
	pid() int             // of the program itself, as seen by this process
	isolation() Isolation // how the descendants are contained
	hides() bool          // reports whether the folder to hide is hidden from it
	terminate()           // asks the program to exit
	kill()                // kills it and all its descendants
	ended()               // called once, when the program has exited
}

// Process is a running program. Read reads its stdout and Write writes its
// stdin; Close stops it, gracefully at first.
type Process struct {
	stdin  *os.File
	stdout *os.File
	stderr *tail
	cmd    *exec.Cmd
	held   processGroup
	pid    int
	grace  time.Duration

	visible string // why the folder to hide is visible

	closeIn sync.Once
	done    chan struct{}
	err     error // why it ended; set before done is closed
}

// Read reads what the program writes to stdout.
func (p *Process) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// Write writes to the program's stdin.
func (p *Process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// PID returns the process id of the program.
func (p *Process) PID() int { return p.pid }

// Isolation returns how the program's descendants are contained.
func (p *Process) Isolation() Isolation { return p.held.isolation() }

// Visible returns why the folder that the Launcher hides is visible to the
// program, or "" if it is hidden.
func (p *Process) Visible() string { return p.visible }

// Stderr returns the last lines that the program wrote to stderr.
func (p *Process) Stderr() []string { return p.stderr.lines() }

// Done is closed when the program and its descendants are gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program exited, or nil while it runs. An exit with code 0
// is also an error, because a server must not exit unless it is stopped.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Close stops the program and waits until it is gone.
func (p *Process) Close() error {
	p.Stop(context.Background())
	return nil
}

// Stop stops the program as MCP specifies: it closes stdin; if the program does
// not exit within a grace period it asks it to terminate, and after another one
// kills it with its descendants. If ctx is done it does not wait for the grace
// periods. Stop returns when no process is left.
func (p *Process) Stop(ctx context.Context) {
	p.closeIn.Do(func() { p.stdin.Close() })
	if !p.gone(ctx) {
		p.held.terminate()
		if !p.gone(ctx) {
			p.held.kill()
		}
	}
	<-p.done
}

// Kill kills the program and its descendants immediately, and waits until they
// are gone.
func (p *Process) Kill() {
	p.held.kill()
	<-p.done
}

// gone waits for the program to exit, up to the grace period, and reports
// whether it did.
func (p *Process) gone(ctx context.Context) bool {
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// run waits until the program has exited.
func (p *Process) run(stderr *os.File) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.stderr.readPipe(stderr)
	}()
	waitErr := p.cmd.Wait()
	p.held.ended()
	// The pipes should be closed now. A descendant that escaped may still have
	// them open; do not wait for it. Pipes have no deadlines on Windows, but
	// there no descendant can escape.
	if !closedWithin(read, time.Second) {
		_ = stderr.SetReadDeadline(time.Now())
		closedWithin(read, 10*time.Second)
	}
	stderr.Close()
	p.closeIn.Do(func() { p.stdin.Close() })
	p.err = exitError(p.cmd.ProcessState, waitErr)
	close(p.done)
	// The last output may still be in the pipe: give its reader some time.
	time.AfterFunc(10*time.Second, func() { p.stdout.Close() })
}

// closedWithin reports whether c is closed before d has passed.
func closedWithin(c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}

// ExitError reports how a program exited.
type ExitError struct {
	Code   int    // -1 if a signal killed it and the code is not known
	Signal string // the signal that seems to have killed it, or empty
}

func (e *ExitError) Error() string {
	switch {
	case e.Signal != "" && e.Code < 0:
		return "ended by " + e.Signal
	case e.Signal != "":
		return fmt.Sprintf("exited with code %d (%s)", e.Code, e.Signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

func exitError(state *os.ProcessState, err error) error {
	if state == nil {
		return fmt.Errorf("wait for the program: %w", err)
	}
	e := &ExitError{Code: state.ExitCode()}
	e.Signal = signalOf(state)
	return e
}
