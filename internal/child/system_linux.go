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

// method is one way to contain the descendants of a program.
type method struct {
	is    Isolation
	mode  string  // of the keeper; empty for none
	flags uintptr // of clone
}

// methods returns the methods to try, best first. An ordinary user needs a user
// namespace to create the others; root needs it only in a container without
// these privileges.
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

// system starts programs with the best method that works.
type system struct {
	probe sync.Once
	ways  []method // the methods to try, best first; nil means all
	file  *os.File // the keeper
}

func (s *system) isolation(fork forker) Isolation {
	s.probe.Do(func() { s.choose(fork) })
	if len(s.ways) == 0 {
		return Group
	}
	return s.ways[0].is
}

// choose tries the methods by executing a folder, which fails: a keeper that
// reports that error has completed all other steps. It removes the methods
// before the first one that works.
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
			continue // no more namespaces are available
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

// notHidden is the bit that the keeper sets in the error number if it could not
// hide the folder.
const notHidden syscall.Errno = 1 << 16

// exec starts the keeper, which hides the folder, unless that is empty, and
// starts cmd. The first result is the error of the keeper, the second the error
// from starting the keeper.
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
		Setsid:     true, // only this process handles an interrupt from the terminal
		Pdeathsig:  syscall.SIGKILL,
	}
	if w.is == Subreaper {
		cmd.SysProcAttr.Pdeathsig = keeperOrder
	}
	if w.flags&syscall.CLONE_NEWUSER != 0 {
		if w.mode == keeperMounts {
			// An ordinary user loses the capabilities in the namespace when
			// a file is executed; the keeper temporarily needs this one.
			cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
		}
		// The same ids inside and outside, so that files have their real
		// owners.
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
// Between fork and exec the child moves descriptors to numbers above the
// highest one that the program inherits, and could overwrite the keeper's,
// which it does not inherit.
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

// subreaperGroup is a program with its descendants below a keeper, in a
// namespace or under a subreaper.
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
	// The keeper cannot kill a descendant that runs as another user, and would
	// wait for it forever.
	time.AfterFunc(5*time.Second, func() { _ = k.keeper.Kill() })
}

// pid returns the process id of the program below its keepers, or that of the
// keeper if it cannot be read.
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
