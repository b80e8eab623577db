//go:build unix

package child

import (
	"os"
	"syscall"
)

const (
	pathSeparators = "/"
	defaultPath    = "/usr/local/bin:/usr/bin:/bin"
)

func extensions(string, string) []string { return []string{""} }

// group is a program that leads a process group.
type group struct{ process *os.Process }

func (g *group) pid() int             { return g.process.Pid }
func (g *group) isolation() Isolation { return Group }
func (g *group) hides() bool          { return false }
func (g *group) terminate()           { _ = syscall.Kill(-g.process.Pid, syscall.SIGTERM) }
func (g *group) kill()                { _ = syscall.Kill(-g.process.Pid, syscall.SIGKILL) }

// ended kills the remaining processes of the program's group. The group id is
// not reused while the group has members.
func (g *group) ended() { g.kill() }

// signalOf returns the name of the signal that killed a process, or "". Keepers
// and shells report it as an exit code over 128.
func signalOf(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok {
		return ""
	}
	switch code := state.ExitCode(); {
	case status.Signaled():
		return status.Signal().String()
	case code > 128 && code <= 128+31:
		return syscall.Signal(code - 128).String()
	}
	return ""
}
