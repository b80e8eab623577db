package attach

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// sameUser reports whether the peer runs as this user or root.
func sameUser(c net.Conn) bool {
	cred, ok := peer(c)
	return ok && (int(cred.Uid) == os.Getuid() || cred.Uid == 0)
}

// outsider reports whether the peer may use the gateway with its user's
// rights: it runs in the gateway's own PID namespace and was not started by
// the gateway. Servers that the gateway starts run as the same user.
func outsider(c net.Conn) bool {
	cred, ok := peer(c)
	return ok && samePIDNamespace(cred.Pid) && !descends(cred.Pid, os.Getpid())
}

func peer(c net.Conn) (*unix.Ucred, bool) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, false
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || credErr != nil {
		return nil, false
	}
	return cred, true
}

// samePIDNamespace reports whether a process is in our PID namespace, by
// comparing the namespace files. The kernel reports pid 0 for a process in a
// namespace that is not below ours.
func samePIDNamespace(pid int32) bool {
	if pid <= 0 {
		return false
	}
	own, err := os.Readlink("/proc/self/ns/pid")
	theirs, theirErr := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return err == nil && theirErr == nil && own == theirs
}

// maxGenerations bounds the walk up the process tree.
const maxGenerations = 1000

// descends reports whether the process was started by ancestor, directly or
// indirectly. If that cannot be determined, it returns true.
func descends(pid int32, ancestor int) bool {
	at := int(pid)
	if at == ancestor {
		return false // the gateway itself
	}
	for range maxGenerations {
		if at == ancestor {
			return true
		}
		if at <= 1 {
			return false
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", at))
		if err != nil {
			return true
		}
		// The name is in parentheses and may contain any characters.
		rest := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(rest) < 2 {
			return true
		}
		if at, err = strconv.Atoi(string(rest[1])); err != nil {
			return true
		}
	}
	return true
}
