//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// serverUser returns whom the server runs as: ourselves, or somebody with
// fewer rights when we are root, which PostgreSQL refuses to be.
func serverUser() (uid, gid int, err error) {
	if os.Geteuid() != 0 {
		return os.Geteuid(), os.Getegid(), nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil {
			return uid, gid, nil
		}
	}
	return 0, 0, fmt.Errorf("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

// give hands a folder to the server's user.
func give(dir string) error {
	uid, gid, err := serverUser()
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	return os.Chown(dir, uid, gid)
}

// asServer makes a command run as the server's user, and end with us.
func asServer(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	endWithParent(cmd.SysProcAttr)
	if uid, gid, err := serverUser(); err == nil && os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	// The server must not inherit settings meant for clients.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}

// interrupt asks for a fast end: connections are cut, data is written.
func interrupt(p *os.Process) { p.Signal(syscall.SIGINT) }
