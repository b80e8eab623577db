//go:build linux && (amd64 || arm64)

package child

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// method is one way to keep the descendants of a program together.
type method struct {
	is    Isolation
	mode  string  // of the keeper; empty for none
	flags uintptr // of clone
}

// methods lists what can be tried, best first. A user namespace is what an
// ordinary user needs to make the others; root has no use for it, unless a
// container took its rights.
func methods(uid int) []method {
	const process, mounts, user = syscall.CLONE_NEWPID, syscall.CLONE_NEWNS, syscall.CLONE_NEWUSER
	list := []method{
		{Namespace, keeperMounts, process | mounts | user},
		{Namespace, keeperNamespace, process | user},
		{Subreaper, keeperSubreaper, 0},
		{Group, "", 0},
	}
	if uid == 0 {
		list = append([]method{{Namespace, keeperMounts, process | mounts}, {Namespace, keeperNamespace, process}}, list...)
	}
	return list
}

// system starts programs in the best way that works here.
type system struct {
	probe sync.Once
	ways  []method // those to try, best first; nil means all
	file  *os.File // the keeper
}

func (s *system) isolation(fork forker) Isolation {
	s.probe.Do(func() { s.choose(fork) })
	if len(s.ways) == 0 {
		return Group
	}
	return s.ways[0].is
}

// choose tries the ways out on a folder, which cannot be executed: the keeper
// that reports this has done all the rest. Those before the first that works
// are forgotten.
func (s *system) choose(fork forker) {
	if s.ways == nil {
		s.ways = methods(os.Geteuid())
	}
	var err error
	if s.file, err = keeperFile(); err != nil {
		s.ways = nil
		return
	}
	for len(s.ways) > 0 && s.ways[0].mode != "" {
		cmd := &exec.Cmd{Path: "/", Args: []string{"/"}, Env: []string{}}
		if execErr, startErr := s.ways[0].exec(cmd, s.file, "probe", "", fork); startErr == nil {
			_ = cmd.Wait()
			if execErr == syscall.EACCES {
				return
			}
		}
		s.ways = s.ways[1:]
	}
}

func (s *system) start(command func() *exec.Cmd, name, hide string, fork forker) (*exec.Cmd, processGroup, error) {
	s.probe.Do(func() { s.choose(fork) })
	for _, w := range s.ways {
		if w.mode == "" {
			break
		}
		hidden := hide
		if w.mode != keeperMounts {
			hidden = ""
		}
		cmd := command()
		execErr, err := w.exec(cmd, s.file, name, hidden, fork)
		if execErr&notHidden != 0 {
			_ = cmd.Wait()
			hidden = ""
			cmd = command()
			execErr, err = w.exec(cmd, s.file, name, hidden, fork)
		}
		switch {
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EUSERS), errors.Is(err, syscall.EPERM):
			continue // there are no more namespaces for us
		case err != nil:
			return nil, nil, err
		case execErr != 0:
			_ = cmd.Wait()
			return nil, nil, execErr
		}
		return cmd, &subreaperGroup{way: w, keeper: cmd.Process, hidden: hidden != ""}, nil
	}
	cmd := command()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := fork(cmd); err != nil {
		return nil, nil, err
	}
	return cmd, &group{process: cmd.Process}, nil
}

// notHidden marks the number of the error for which the keeper could not hide
// a folder.
const notHidden syscall.Errno = 1 << 16

// exec starts the keeper, which hides a folder, if not empty, and starts cmd.
// The first result is why the keeper could not do that, the second why the
// keeper itself did not start.
func (w method) exec(cmd *exec.Cmd, keeper *os.File, name, hide string, fork forker) (syscall.Errno, error) {
	r, report, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{report}
	cmd.Args = append([]string{"junctor-keep " + name, w.mode + hide, cmd.Path}, cmd.Args...)
	number, free := highDescriptor(cmd, keeper)
	defer free()
	cmd.Path = fmt.Sprintf("/proc/self/fd/%d", number)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: w.flags,
		Setsid:     true, // an interrupt from the terminal is ours to handle
		Pdeathsig:  syscall.SIGKILL,
	}
	if w.is == Subreaper {
		cmd.SysProcAttr.Pdeathsig = keeperOrder
	}
	if w.flags&syscall.CLONE_NEWUSER != 0 {
		if w.mode == keeperMounts {
			// Executing a file takes an ordinary user's rights inside the
			// namespace away; the keeper needs this one for a moment.
			cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
		}
		// The same numbers inside and outside: files look as they are.
		uid, gid := os.Geteuid(), os.Getegid()
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	err = fork(cmd)
	report.Close()
	runtime.KeepAlive(keeper)
	if err != nil {
		return 0, err
	}
	var errno [4]byte
	if _, err := io.ReadFull(r, errno[:]); err != nil {
		return 0, nil // closed by a successful exec
	}
	return syscall.Errno(binary.LittleEndian.Uint32(errno[:])), nil
}

// highDescriptor duplicates the keeper's descriptor above those of the command.
// Between fork and exec the child moves descriptors to the numbers above the
// highest one that it passes on, and could overwrite that of the keeper, which is
// not passed on.
func highDescriptor(cmd *exec.Cmd, keeper *os.File) (number int, free func()) {
	const moved = 16 // more than the child moves
	highest := keeper.Fd()
	for _, f := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles[0]} {
		if f, ok := f.(*os.File); ok && f != nil {
			highest = max(highest, f.Fd())
		}
	}
	n, err := unix.FcntlInt(keeper.Fd(), unix.F_DUPFD_CLOEXEC, int(highest)+moved)
	if err != nil { // no descriptor that high
		return int(keeper.Fd()), func() {}
	}
	return n, func() { _ = unix.Close(n) }
}

// subreaperGroup is a program with its descendants under a keeper.
type subreaperGroup struct {
	way    method
	keeper *os.Process
	hidden bool
}

func (k *subreaperGroup) isolation() Isolation { return k.way.is }
func (k *subreaperGroup) hides() bool          { return k.hidden }
func (k *subreaperGroup) terminate()           { _ = k.keeper.Signal(syscall.SIGTERM) }
func (k *subreaperGroup) ended()               {}

func (k *subreaperGroup) kill() {
	if k.way.is == Namespace {
		_ = k.keeper.Kill()
		return
	}
	_ = k.keeper.Signal(keeperOrder)
	// A descendant that took another user's identity cannot be killed, and
	// the keeper would wait for it forever.
	time.AfterFunc(5*time.Second, func() { _ = k.keeper.Kill() })
}

// pid finds the program behind its keepers.
func (k *subreaperGroup) pid() int {
	pid := k.keeper.Pid
	levels := 1
	if k.way.is == Namespace {
		levels = 2
	}
	for range levels {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		first, _, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
		next, convErr := strconv.Atoi(first)
		if err != nil || convErr != nil {
			return k.keeper.Pid
		}
		pid = next
	}
	return pid
}
