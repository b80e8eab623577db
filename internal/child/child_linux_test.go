//go:build linux && (amd64 || arm64)

package child

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary plays the roles of a family of processes: "junctor" starts
// "tree", which starts an ordinary child and one that forks twice and creates
// its own session. All have the writing end of a FIFO open, so that its reader
// gets EOF when the last of them is gone, and not before.
const (
	roleVar = "CHILD_TEST_ROLE"
	wayVar  = "CHILD_TEST_WAY"
	fifoVar = "CHILD_TEST_FIFO"
	selfVar = "CHILD_TEST_SELF" // the binary, where others may read it

	// By default the race detector delays the exit of each of them by a second.
	noWait = "GORACE=atexit_sleep_ms=0"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "junctor":
		playJunctor()
	case "tree":
		playTree()
	case "fork":
		spawn("leaf", os.NewFile(3, "fifo"), true)
	case "leaf":
		playLeaf(os.NewFile(3, "fifo"))
	case "gone":
		// nothing
	case "intruder":
		playIntruder()
	case "hider":
		playHider()
	case "orphans":
		playOrphans()
	}
	os.Exit(0)
}

func playJunctor() {
	l := NewLauncher()
	l.system.ways = waysNamed(os.Getenv(wayVar))
	p, err := l.Start(selfSpec("tree", fifoVar+"="+os.Getenv(fifoVar)))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.Isolation())
	select {}
}

func playTree() {
	fifo, err := os.OpenFile(os.Getenv(fifoVar), os.O_WRONLY, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	spawn("leaf", fifo, false)
	_ = spawn("fork", fifo, true).Wait()
	if os.Getenv("CHILD_TEST_LEAVE") != "" {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(7)
	}
	playLeaf(fifo)
}

func playLeaf(fifo *os.File) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	fmt.Fprintln(fifo, "alive")
	for {
		time.Sleep(time.Hour)
	}
}

// playOrphans leaves orphans behind that exit, and checks that they are reaped:
// no zombie may remain in the /proc of its namespace.
func playOrphans() {
	for range 5 {
		cmd := exec.Command("/bin/sh", "-c", "true & true & exit 0")
		_ = cmd.Run()
	}
	for deadline := time.Now().Add(time.Minute); ; {
		dead := ""
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, name := range stats {
			if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), ") Z ") {
				dead = string(b)
			}
		}
		if dead == "" && len(stats) == 3 { // two keepers and this process
			fmt.Println("clean")
			return
		}
		if time.Now().After(deadline) {
			fmt.Println("zombie", dead, len(stats))
			return
		}
	}
}

func spawn(role string, fifo *os.File, session bool) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleVar + "=" + role, noWait}
	cmd.ExtraFiles = []*os.File{fifo}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return cmd
}

func selfSpec(role string, env ...string) Spec {
	self := os.Getenv(selfVar)
	if self == "" {
		var err error
		if self, err = os.Executable(); err != nil {
			panic(err)
		}
	}
	return Spec{Name: role, Command: self, Env: append([]string{roleVar + "=" + role, noWait}, env...)}
}

// waysNamed returns the methods of a test by name.
func waysNamed(name string) []method {
	const process, mounts, user = syscall.CLONE_NEWPID, syscall.CLONE_NEWNS, syscall.CLONE_NEWUSER
	switch name {
	case "root mounts":
		return []method{{Namespace, keeperMounts, process | mounts}}
	case "root":
		return []method{{Namespace, keeperNamespace, process}}
	case "user mounts":
		return []method{{Namespace, keeperMounts, process | mounts | user}}
	case "user":
		return []method{{Namespace, keeperNamespace, process | user}}
	case "subreaper":
		return []method{{Subreaper, keeperSubreaper, 0}}
	case "group":
		return []method{{Group, "", 0}}
	}
	return nil
}

// allWays are the methods that contain all descendants, which a group does not.
var allWays = []string{"root mounts", "root", "user mounts", "user", "subreaper"}

// launcher returns a Launcher that uses the named methods. It skips the test if
// the system does not allow them.
func launcher(t *testing.T, name string) *Launcher {
	t.Helper()
	l := NewLauncher()
	l.system.ways = waysNamed(name)
	t.Cleanup(l.Close)
	if name != "group" && l.Isolation() == Group {
		t.Skipf("this system refuses the way %q", name)
	}
	return l
}

// family is the reading end of the FIFO that all processes of a family have
// open.
type family struct {
	t    *testing.T
	path string
	r    *bufio.Reader
}

func newFamily(t *testing.T) *family {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(path, 0o666)
	return &family{t: t, path: path}
}

// alive waits until n members have written that they are alive.
func (f *family) alive(n int) {
	f.t.Helper()
	f.within("the family to start", func() {
		file, err := os.Open(f.path)
		if err != nil {
			f.t.Error(err)
			return
		}
		f.t.Cleanup(func() { file.Close() })
		f.r = bufio.NewReader(file)
		for range n {
			if line, err := f.r.ReadString('\n'); err != nil || line != "alive\n" {
				f.t.Errorf("family says %q, %v", line, err)
				return
			}
		}
	})
}

// extinct waits until no member is left.
func (f *family) extinct() {
	f.t.Helper()
	f.within("the last survivor to go", func() {
		if rest, err := io.ReadAll(f.r); err != nil || len(rest) > 0 {
			f.t.Errorf("family says %q, %v at its end", rest, err)
		}
	})
}

func (f *family) within(what string, do func()) {
	f.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
		if f.t.Failed() {
			f.t.FailNow()
		}
	case <-time.After(time.Minute):
		f.t.Fatalf("waited a minute for %s", what)
	}
}

func TestDescendantsEndWhenGatewayIsKilled(t *testing.T) {
	for _, name := range allWays {
		t.Run(name, func(t *testing.T) {
			launcher(t, name)
			f := newFamily(t)
			junctor := startJunctor(t, name, f, nil)
			f.alive(3)
			if err := junctor.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			f.extinct()
		})
	}
	t.Run("best for an ordinary user", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can become somebody else")
		}
		f := newFamily(t)
		// The folder of the FIFO must be accessible to that user.
		for dir := filepath.Dir(f.path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			_ = os.Chmod(dir, 0o755)
		}
		t.Setenv(selfVar, copySelf(t, filepath.Dir(f.path)))
		junctor := startJunctor(t, "", f, &syscall.Credential{Uid: 65534, Gid: 65534})
		f.alive(3)
		if err := junctor.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		f.extinct()
	})
}

// copySelf copies this program into a folder, executable for all users whatever
// the umask is, and returns its path.
func copySelf(t *testing.T, folder string) string {
	t.Helper()
	self := filepath.Join(folder, "self")
	binary, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.WriteFile(self, binary, 0o755), os.Chmod(self, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func startJunctor(t *testing.T, way string, f *family, as *syscall.Credential) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(cmp.Or(os.Getenv(selfVar), "/proc/self/exe"))
	cmd.Env = []string{noWait, roleVar + "=junctor", wayVar + "=" + way, fifoVar + "=" + f.path, selfVar + "=" + os.Getenv(selfVar)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.Contains(line, "start") {
		t.Fatalf("the parent says %q, %v", line, err)
	}
	t.Logf("isolation: %s", strings.TrimSpace(line))
	return cmd
}

func TestDescendantsEndWithProgram(t *testing.T) {
	for _, name := range allWays {
		t.Run(name, func(t *testing.T) {
			l := launcher(t, name)
			f := newFamily(t)
			p, err := l.Start(selfSpec("tree", fifoVar+"="+f.path, "CHILD_TEST_LEAVE=1"))
			if err != nil {
				t.Fatal(err)
			}
			f.alive(2)
			p.grace = time.Hour // the program must exit without being killed
			p.Stop(t.Context()) // closes stdin: the program exits by itself
			f.extinct()
			if got, want := p.Err().Error(), "exited with code 7"; got != want {
				t.Errorf("Err() = %q, want %q", got, want)
			}
		})
	}
}

func TestDescendantsEndOnStop(t *testing.T) {
	for _, name := range allWays {
		t.Run(name, func(t *testing.T) {
			l := launcher(t, name)
			f := newFamily(t)
			p, err := l.Start(selfSpec("tree", fifoVar+"="+f.path))
			if err != nil {
				t.Fatal(err)
			}
			f.alive(3)
			p.grace = time.Millisecond // all members ignore SIGTERM
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			f.extinct()
			if got := p.Err().Error(); !strings.Contains(got, "killed") {
				t.Errorf("Err() = %q, want the signal", got)
			}
		})
	}
}

func TestDescendantsEndOnLauncherClose(t *testing.T) {
	for _, name := range allWays {
		t.Run(name, func(t *testing.T) {
			l := launcher(t, name)
			f := newFamily(t)
			p, err := l.Start(selfSpec("tree", fifoVar+"="+f.path))
			if err != nil {
				t.Fatal(err)
			}
			f.alive(3)
			l.Close()
			f.extinct()
			<-p.Done()
			if _, err := l.Start(selfSpec("gone")); err != ErrClosed {
				t.Errorf("Start after Close: %v, want ErrClosed", err)
			}
		})
	}
}

func TestOrphansAreReaped(t *testing.T) {
	for _, name := range []string{"root mounts", "user mounts"} {
		t.Run(name, func(t *testing.T) {
			l := launcher(t, name)
			p, err := l.Start(selfSpec("orphans"))
			if err != nil {
				t.Fatal(err)
			}
			out, err := io.ReadAll(p)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.TrimSpace(string(out)), "clean"; got != want {
				t.Errorf("program found %q, want %q", got, want)
			}
		})
	}
}

// A program must not be confused by its PID, its parent and its user.
func TestProgramSeesOrdinaryProcessEnvironment(t *testing.T) {
	for _, name := range append(allWays, "group") {
		t.Run(name, func(t *testing.T) {
			l := launcher(t, name)
			p, err := l.Start(Spec{Name: "sh", Command: "sh", Env: []string{"PATH=/usr/bin:/bin"}, Args: []string{"-c",
				`echo $$ $PPID $(id -u); ls -l "$0" >/dev/null && test -r /proc/self/status && echo ok; kill -TERM $$; sleep 60`, "/bin/sh"}})
			if err != nil {
				t.Fatal(err)
			}
			out, err := io.ReadAll(p)
			if err != nil {
				t.Fatal(err)
			}
			<-p.Done()
			var pid, parent, uid int
			if _, err := fmt.Sscanf(string(out), "%d %d %d\nok\n", &pid, &parent, &uid); err != nil {
				t.Fatalf("program printed %q: %v", out, err)
			}
			// Some programs exit if their parent has PID 1, because they assume
			// that they were orphaned. And with PID 1 the program would ignore
			// most signals.
			if pid == 1 || parent == 1 || uid != os.Getuid() {
				t.Errorf("pid %d, parent %d, uid %d", pid, parent, uid)
			}
			if got := p.Err().Error(); !strings.Contains(got, "terminated") {
				t.Errorf("Err() = %q, want that it was terminated", got)
			}
		})
	}
}

func TestTerminateSignalsProcessGroup(t *testing.T) {
	for _, name := range append(allWays, "group") {
		t.Run(name, func(t *testing.T) {
			l := launcher(t, name)
			p, err := l.Start(Spec{Command: "sh", Env: []string{"PATH=/usr/bin:/bin"}, Args: []string{"-c",
				`trap 'wait; echo shell; exit 0' TERM
				 sh -c 'trap "echo inner; exit 0" TERM; echo ready; while :; do sleep 0.05; done' &
				 while :; do sleep 0.05; done`}})
			if err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(p)
			if line, err := r.ReadString('\n'); line != "ready\n" {
				t.Fatalf("program printed %q, %v", line, err)
			}
			p.grace = 0
			go func() {
				p.closeIn.Do(func() { p.stdin.Close() })
				p.held.terminate()
			}()
			out, _ := io.ReadAll(r)
			if got, want := string(out), "inner\nshell\n"; got != want {
				t.Errorf("program printed %q, want %q", got, want)
			}
			<-p.Done()
		})
	}
}

func TestKeeperMemoryIsSmall(t *testing.T) {
	l := launcher(t, "")
	p, err := l.Start(Spec{Name: "cat", Command: "cat", Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	k, ok := p.held.(*subreaperGroup)
	if !ok {
		t.Skip("no keeper here")
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", k.keeper.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		t.Fatal(err)
	}
	if resident*os.Getpagesize() > 256<<10 {
		t.Errorf("a keeper takes %d pages of memory", resident)
	}
	if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", k.keeper.Pid)); string(comm) != "junctor-keep\n" {
		t.Errorf("ps shows the keeper as %q", comm)
	}
	if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID())); string(comm) != "cat\n" {
		t.Errorf("PID() is that of %q, want cat", comm)
	}
}

// TestKeeperBesideItsPipes starts a program while the keeper's descriptor is
// the next one above those that the program inherits, which is where the child
// moves its descriptors before exec.
func TestKeeperBesideItsPipes(t *testing.T) {
	keeper, err := keeperFile()
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	dup := func(f *os.File, least int) *os.File {
		n, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, least)
		if err != nil {
			t.Fatal(err)
		}
		copied := os.NewFile(uintptr(n), f.Name())
		t.Cleanup(func() { copied.Close() })
		return copied
	}
	below := dup(null, 300)
	beside := dup(keeper, int(below.Fd())+1)
	subreaper := method{Subreaper, keeperSubreaper, 0}
	cmd := &exec.Cmd{Path: "/bin/true", Args: []string{"true"}, Env: []string{}, Stdin: below}
	execErr, err := subreaper.exec(cmd, beside, "beside", "", (*exec.Cmd).Start)
	if err != nil || execErr != 0 {
		t.Fatalf("descriptors %d and %d: %v, %v", below.Fd(), beside.Fd(), execErr, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
