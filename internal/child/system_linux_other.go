//go:build linux && !(amd64 || arm64)

package child

import (
	"os/exec"
	"syscall"
)

// system starts programs in process groups: there is no keeper for this
// architecture.
type system struct{}

func (*system) isolation(forker) Isolation { return Group }

func (*system) start(command func() *exec.Cmd, _, _ string, fork forker) (*exec.Cmd, processGroup, error) {
	cmd := command()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := fork(cmd); err != nil {
		return nil, nil, err
	}
	return cmd, &group{process: cmd.Process}, nil
}
