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

// serverUser returns the user that the server runs as: the current user, or an
// unprivileged one instead of root, which PostgreSQL refuses to run as.
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

// give makes the server's user the owner of a folder.
func give(dir string) error {
	uid, gid, err := serverUser()
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	return os.Chown(dir, uid, gid)
}

// asServer makes a command run as the server's user and stop with this process.
func asServer(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	endWithParent(cmd.SysProcAttr)
	if uid, gid, err := serverUser(); err == nil && os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	// The server must not inherit settings meant for clients.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}

// interrupt requests a fast shutdown, which closes connections and writes data.
func interrupt(p *os.Process) { p.Signal(syscall.SIGINT) }
