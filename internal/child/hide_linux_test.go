//go:build linux && (amd64 || arm64)

package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const hideVar = "CHILD_TEST_HIDE"

// playIntruder is a program that tries to access the folder named on its stdin,
// and prints what it could do there.
func playIntruder() {
	folder, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	intrude(strings.TrimSpace(folder))
	fmt.Println("done")
}

func intrude(folder string) {
	if b, err := os.ReadFile(filepath.Join(folder, "secret.key")); !errors.Is(err, fs.ErrNotExist) {
		fmt.Printf("read %q, %v\n", b, err)
	}
	if c, err := net.Dial("unix", filepath.Join(folder, "junctor.sock")); err == nil {
		c.Close()
		fmt.Println("connected")
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		fmt.Println("listed", entries, err)
	}
	if os.WriteFile(filepath.Join(folder, "new"), nil, 0o600) == nil {
		fmt.Println("wrote")
	}
	if os.Geteuid() == 0 {
		return // root can undo the hiding
	}
	if syscall.Unmount(folder, syscall.MNT_DETACH) == nil {
		fmt.Println("unmounted")
	}
	if os.Getenv(hideVar) != "" {
		return
	}
	// With all capabilities in a new user namespace.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{noWait, roleVar + "=intruder", hideVar + "=again"}
	cmd.Stdin = strings.NewReader(folder + "\n")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		AmbientCaps: []uintptr{21}, // CAP_SYS_ADMIN
	}
	if out, err := cmd.Output(); err == nil && string(out) != "done\n" {
		fmt.Printf("in a namespace: %s", out)
	}
}

// playHider starts an intruder for the folder like the gateway of an ordinary
// user.
func playHider() {
	l := NewLauncher()
	l.hide = os.Getenv(hideVar)
	p, err := l.Start(selfSpec("intruder"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if p.Visible() != "" {
		fmt.Println("visible:", p.Visible())
		return
	}
	fmt.Fprintln(p, l.hide)
	_, _ = io.Copy(os.Stdout, p)
}

// dataFolder creates a folder with a key and a socket with a listener.
func dataFolder(t *testing.T) string {
	t.Helper()
	// Not t.TempDir, because the path of a socket must be short.
	dir, err := os.MkdirTemp("", "hide")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	folder := filepath.Join(dir, "data")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "secret.key"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(folder, "junctor.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return folder
}

func TestFolderIsHidden(t *testing.T) {
	for _, name := range allWays {
		t.Run(name, func(t *testing.T) {
			l := launcher(t, name)
			folder := dataFolder(t)
			// A link to it must not make a difference.
			l.hide = filepath.Join(filepath.Dir(folder), "link")
			if err := os.Symlink(folder, l.hide); err != nil {
				t.Fatal(err)
			}
			p, err := l.Start(selfSpec("intruder"))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(p, folder)
			out, err := io.ReadAll(p)
			if err != nil {
				t.Fatal(err)
			}
			<-p.Done()
			if strings.HasSuffix(name, "mounts") {
				if got, want := string(out), "done\n"; got != want || p.Visible() != "" {
					t.Errorf("the program got %q, want %q; visible because %q", got, want, p.Visible())
				}
			} else if !strings.Contains(p.Visible(), "the system") || !strings.Contains(string(out), "connected") {
				t.Errorf("Visible() = %q, want that the system does not allow it; the program got %q", p.Visible(), out)
			}
			// Hiding the folder from the program does not affect others.
			if b, err := os.ReadFile(filepath.Join(folder, "secret.key")); err != nil || string(b) != "secret" {
				t.Errorf("the key is %q, %v after the program ran", b, err)
			}
		})
	}
	t.Run("from an ordinary user's programs", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can become somebody else")
		}
		folder := dataFolder(t)
		self := copySelf(t, filepath.Dir(folder))
		const uid = 65534
		for _, name := range []string{filepath.Dir(folder), folder, filepath.Join(folder, "secret.key"), filepath.Join(folder, "junctor.sock")} {
			if err := os.Chown(name, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(self)
		cmd.Dir = "/"
		cmd.Env = []string{noWait, roleVar + "=hider", hideVar + "=" + folder, selfVar + "=" + self}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		if strings.HasPrefix(string(out), "visible: the system") {
			t.Skipf("this system lets no ordinary user mount: %s", out)
		}
		if err != nil || string(out) != "done\n" {
			t.Errorf("the program got %q, %v; want nothing", out, err)
		}
	})
}

func TestFolderStaysVisible(t *testing.T) {
	folder := dataFolder(t)
	script := filepath.Join(folder, "server.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho here\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(folder), "server")
	if err := os.Symlink(script, link); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(filepath.Dir(folder), "self")
	if err := os.WriteFile(self, []byte("#!/bin/sh\necho here\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		spec    Spec
		visible string // a part of the reason; empty when hidden
	}{
		"command":           {Spec{Command: script}, "command"},
		"link to a command": {Spec{Command: link}, "command"},
		"argument":          {Spec{Command: "/bin/sh", Args: []string{script}}, "arguments"},
		"working directory": {Spec{Command: "/bin/sh", Args: []string{"server.sh"}, Dir: folder}, "working directory"},
		"variable":          {Spec{Command: "/bin/sh", Args: []string{"-c", `. "$DIR/server.sh"`}, Env: []string{"DIR=" + folder}}, "DIR"},
		"this program":      {Spec{Command: self}, "this program"},
		"its parent":        {Spec{Command: "/bin/sh", Args: []string{"-c", "echo here"}, Dir: filepath.Dir(folder)}, ""},
		"a longer name":     {Spec{Command: "/bin/sh", Args: []string{"-c", "echo here", folder + "-2"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := launcher(t, "")
			l.hide, l.self = folder, self
			p, err := l.Start(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := io.ReadAll(p); err != nil || string(out) != "here\n" {
				t.Errorf("the program printed %q, %v", out, err)
			}
			if got := p.Visible(); tt.visible != "" && !strings.Contains(got, tt.visible) || tt.visible == "" && strings.Contains(got, "its ") {
				t.Errorf("Visible() = %q, want %q", got, tt.visible)
			}
		})
	}
	t.Run("no folder", func(t *testing.T) {
		l := launcher(t, "")
		l.hide = filepath.Join(folder, "none")
		p, err := l.Start(Spec{Command: "/bin/sh", Args: []string{"-c", "echo here"}})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := io.ReadAll(p); err != nil || string(out) != "here\n" || p.Visible() == "" {
			t.Errorf("the program printed %q, %v, visible because %q", out, err, p.Visible())
		}
	})
	// The keeper reports a folder that it cannot mount on, and the program runs
	// nevertheless.
	t.Run("a mount that fails", func(t *testing.T) {
		l := launcher(t, "")
		l.Isolation()
		if len(l.system.ways) == 0 || l.system.ways[0].mode != keeperMounts {
			t.Skip("no mounts here")
		}
		cmd := &exec.Cmd{Path: "/bin/true", Args: []string{"true"}}
		errno, err := l.system.ways[0].exec(cmd, l.system.file, "test", folder+"/none", l.fork)
		if err != nil || errno != notHidden|syscall.ENOENT {
			t.Errorf("exec: %d, %v, want ENOENT marked as not hidden", errno, err)
		}
		_ = cmd.Wait()
		cmd, held, err := l.system.start(func() *exec.Cmd { return &exec.Cmd{Path: "/bin/true", Args: []string{"true"}} }, "test", folder+"/none", l.fork)
		if err != nil || held.hides() {
			t.Fatalf("start: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program ended with %v", err)
		}
	})
}
