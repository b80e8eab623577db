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

// processGroup is one program in the grip of the system.
type processGroup interface {
	pid() int             // of the program itself, as others see it
	isolation() Isolation // how it is held
	hides() bool          // the folder to hide is hidden from it
	terminate()           // ask the program to end
	kill()                // end it and everything it started
	ended()               // called once, when the program is gone
}

// Process is a running program. Read and Write are its stdout and stdin;
// Close stops it, gently first.
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

// Visible returns why the program sees the folder that its Launcher hides. It
// is empty when the program does not see it.
func (p *Process) Visible() string { return p.visible }

// Stderr returns the last lines that the program wrote to stderr.
func (p *Process) Stderr() []string { return p.stderr.lines() }

// Done is closed when the program and all that it started are gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program ended; nil while it runs. An exit with code 0 is
// also an error, because a server must not exit by itself.
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

// Stop ends the program as MCP asks: stdin is closed; when that does not end
// it within a moment it is asked to terminate, and then killed with
// everything that it started. When ctx is done it is killed at once. Stop
// returns when nothing is left.
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

// Kill ends the program and everything that it started, now.
func (p *Process) Kill() {
	p.held.kill()
	<-p.done
}

// gone waits a moment for the program to end.
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

// run waits for the end of the program.
func (p *Process) run(stderr *os.File) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.stderr.readPipe(stderr)
	}()
	waitErr := p.cmd.Wait()
	p.held.ended()
	// Nobody should hold the pipes any more. Where a descendant got away it
	// still may, and must not keep us waiting. A pipe of Windows has no deadline,
	// but there no descendant gets away.
	if !closedWithin(read, time.Second) {
		_ = stderr.SetReadDeadline(time.Now())
		closedWithin(read, 10*time.Second)
	}
	stderr.Close()
	p.closeIn.Do(func() { p.stdin.Close() })
	p.err = exitError(p.cmd.ProcessState, waitErr)
	close(p.done)
	// The last output may still be in the pipe, so its reader gets some time.
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

// ExitError is how a program ended.
type ExitError struct {
	Code   int    // -1 when a signal ended it and the code is not known
	Signal string // the signal that seems to have ended it, or empty
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
