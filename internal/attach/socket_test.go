package attach

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	dir := folder(t)
	file := filepath.Join(dir, "junctor.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(file, link); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("this user may not make links: ", err)
		}
		t.Fatal(err)
	}
	a, err := Path(file, "", dir)
	if err != nil || filepath.Dir(a) != dir {
		t.Fatal(a, err)
	}
	if b, _ := Path(link, "", dir); b != a {
		t.Errorf("one file has two sockets, %s and %s", a, b)
	}
	home := filepath.Join(dir, "home")
	if err := os.Symlink(dir, home); err != nil {
		t.Fatal(err)
	}
	before, _ := Path(filepath.Join(home, "new", "junctor.json"), "", dir)
	if err := os.Mkdir(filepath.Join(dir, "new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new", "junctor.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if after, _ := Path(filepath.Join(home, "new", "junctor.json"), "", dir); after != before {
		t.Errorf("a file has another socket once it is written, %s and %s", before, after)
	}
	if b, _ := Path("", "", dir); b == a {
		t.Error("no configuration has the socket of one")
	}
	if b, _ := Path(filepath.Join(dir, "other.json"), "", dir); b == a {
		t.Error("two files have one socket")
	}
	long := filepath.Join(dir, strings.Repeat("x", 100))
	if b, err := Path(file, "", "", long, dir); err != nil || filepath.Dir(b) != dir {
		t.Errorf("Path = %s, %v", b, err)
	}
	if _, err := Path(file, "", long); err == nil {
		t.Error("a path that is too long")
	}
}

func TestListenIsExclusiveAndPrivate(t *testing.T) {
	path := filepath.Join(folder(t), "run", "s.sock")
	if _, err := Dial(ctxFor(t), path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial = %v", err)
	}
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		for file, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, want %v", file, info.Mode().Perm(), want)
			}
		}
	}
	if _, err := Listen(path); !errors.Is(err, ErrRunning) {
		t.Errorf("a second Listen = %v", err)
	}
	ln.Close()
	if _, err := Dial(ctxFor(t), path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial after Close = %v", err)
	}
	// The socket of a killed gateway is replaced.
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	if _, err := Dial(ctxFor(t), path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial of a dead socket = %v", err)
	}
	ln, err = Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}

func TestFoldersWritableByOthersAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders of the profile are private there")
	}
	dir := filepath.Join(folder(t), "open")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.sock")
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Errorf("Listen = %v", err)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := Dial(ctxFor(t), path); err == nil || errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial = %v", err)
	}
	if _, err := Listen(filepath.Join(path, "x", "s.sock")); err == nil {
		t.Error("a socket below a socket")
	}
}

func TestListenErrorNamesPath(t *testing.T) {
	dir := folder(t)
	for name, in := range map[string]string{"lock": "s.sock.lock/x", "socket": "s.sock/x"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name, "s.sock")
			if err := os.MkdirAll(filepath.Join(dir, name, in), 0o700); err != nil {
				t.Fatal(err)
			}
			if ln, err := Listen(path); err == nil {
				ln.Close()
				t.Error("listens")
			}
		})
	}
	if _, err := Dial(ctxFor(t), filepath.Join(dir, "socket", "s.sock")); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial of a folder = %v", err)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if runtime.GOOS == "linux" && sameUser(a) {
		t.Error("a pipe has no user")
	}
}

// Gateways with the same file and other variable values have separate sockets,
// which OtherSockets finds; sockets of killed gateways are removed.
func TestSocketsPerEnvironmentOfOneFile(t *testing.T) {
	dir := folder(t)
	file := filepath.Join(dir, "junctor.json")
	path := func(file, environment string) string {
		p, err := Path(file, environment, dir)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	plain, one, two, foreign := path(file, ""), path(file, "one"), path(file, "two"), path(filepath.Join(dir, "other.json"), "one")
	if plain == one || one == two || one == foreign || strings.Contains(one, "-one") {
		t.Errorf("%s %s %s %s", plain, one, two, foreign)
	}
	for _, p := range []string{two, foreign} { // left over from a killed gateway
		for _, name := range []string{p, p + ".lock"} {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var open []net.Listener
	for _, p := range []string{plain, one} {
		ln, err := Listen(p)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, ln)
	}
	if got := OtherSockets(two); !slices.Equal(got, []string{one, plain}) && !slices.Equal(got, []string{plain, one}) {
		t.Errorf("OtherSockets(%s) = %q", two, got)
	}
	if got := OtherSockets(one); !slices.Equal(got, []string{plain}) {
		t.Errorf("OtherSockets(%s) = %q", one, got)
	}
	if _, err := Dial(ctxFor(t), plain); err != nil {
		t.Errorf("a gateway that runs was removed: %v", err)
	}
	for _, ln := range open {
		ln.Close()
		ln.Close()
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.sock*"))
	if err != nil || runtime.GOOS != "windows" && !slices.Equal(left, []string{foreign, foreign + ".lock"}) {
		t.Errorf("left: %q, %v", left, err)
	}
}
