package attach

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"junctor/internal/filelock"
)

// ErrRunning means that a gateway with the same configuration is running.
var ErrRunning = errors.New("a gateway with this configuration is already running")

// ErrNotRunning means that no gateway with this configuration is running.
var ErrNotRunning = errors.New("no gateway with this configuration is running")

// maxPath is the maximum length of a socket path on all systems.
const maxPath = 103

// Path returns the path of the socket of a gateway, in the first folder in
// which it is short enough. Its name is derived from the path of the
// configuration, which is empty if there is none, and from environment, which
// identifies the values taken from the environment. The name reveals neither.
func Path(configuration, environment string, folders ...string) (string, error) {
	if configuration != "" {
		abs, err := filepath.Abs(configuration)
		if err != nil {
			return "", err
		}
		configuration = resolve(abs)
	}
	sum := sha256.Sum256([]byte(configuration))
	name := "junctor-" + hex.EncodeToString(sum[:8])
	if environment != "" {
		sum = sha256.Sum256([]byte(configuration + "\x00" + environment))
		name += "-" + hex.EncodeToString(sum[:5])
	}
	name += suffix
	for _, folder := range folders {
		if path := filepath.Join(folder, name); folder != "" && len(path) <= maxPath {
			return path, nil
		}
	}
	return "", fmt.Errorf("no folder has a path short enough for a socket (%d bytes): %q", maxPath, folders)
}

// suffix is the suffix of socket names.
const suffix = ".sock"

// sameFile matches the names of sockets. Sockets of the same configuration
// file share the first group and differ in the values taken from the
// environment.
var sameFile = regexp.MustCompile(`^(junctor-[0-9a-f]{16})(-[0-9a-f]{10})?\.sock$`)

// OtherSockets returns the sockets of the same configuration file as path with
// other values of its variables. It does not check whether a gateway is
// listening.
func OtherSockets(path string) []string {
	own := sameFile.FindStringSubmatch(filepath.Base(path))
	if own == nil {
		return nil
	}
	entries, _ := os.ReadDir(filepath.Dir(path)) // none if the folder does not exist
	var found []string
	for _, e := range entries {
		if m := sameFile.FindStringSubmatch(e.Name()); m != nil && m[1] == own[1] && m[0] != own[0] {
			found = append(found, filepath.Join(filepath.Dir(path), m[0]))
		}
	}
	return found
}

// resolve resolves the symbolic links of a path, even if the file does not
// exist yet.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	folder := filepath.Dir(path)
	if folder == path {
		return path
	}
	return filepath.Join(resolve(folder), filepath.Base(path))
}

// Listen opens the socket at path, for this user only. It replaces a socket
// that is no longer in use, and returns ErrRunning if a gateway is listening.
// Closing the listener removes the socket. Listen also removes unused sockets
// of the same configuration file.
func Listen(path string) (net.Listener, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of the socket: %w", err)
	}
	if err := checkFolder(folder); err != nil {
		return nil, err
	}
	// The lock shows whether a gateway is running, not the socket: the lock is
	// released when its process ends.
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = lock.Close()
		return nil, fmt.Errorf("take over the socket: %w", err)
	}
	for _, other := range OtherSockets(path) {
		if lock, err := lockFile(other + ".lock"); err == nil {
			_ = os.Remove(other)
			unlock(lock)
		}
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("listen on the socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		_ = lock.Close()
		return nil, fmt.Errorf("restrict access to the socket: %w", err)
	}
	return &listener{Listener: ln, unlock: sync.OnceFunc(func() { unlock(lock) })}, nil
}

// lockFile locks a file until unlock or the end of the process. unlock removes
// the file, so that no files accumulate; a lock on a file that was removed in
// the meantime is not valid, so lockFile retries.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		held, err := f.Stat()
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("lock the socket: %w", err)
		}
		if named, err := os.Stat(path); err == nil && os.SameFile(held, named) {
			return f, nil
		}
		_ = f.Close()
	}
}

// unlock removes the file while it is locked. On systems that cannot remove
// open files, the file remains.
func unlock(f *os.File) {
	_ = os.Remove(f.Name())
	_ = f.Close()
}

func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the socket: %w", err)
	}
	if err := filelock.Hold(f); err != nil {
		_ = f.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, ErrRunning
		}
		return nil, fmt.Errorf("lock the socket: %w", err)
	}
	return f, nil
}

// listener is a socket with its lock. It accepts only connections of this
// user.
type listener struct {
	net.Listener
	unlock func()
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if sameUser(c) {
			return c, nil
		}
		_ = c.Close()
	}
}

func (l *listener) Close() error {
	err := l.Listener.Close()
	l.unlock()
	return err
}

// dialTimeout bounds the time to connect to a gateway.
const dialTimeout = 2 * time.Second

// Dial connects to the gateway that listens at path. It returns ErrNotRunning
// if there is none.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSocket == 0 && !socketLike(info) {
		return nil, ErrNotRunning
	}
	if err := checkFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, ErrNotRunning // left over from a gateway that was killed
	}
	if !sameUser(c) {
		_ = c.Close()
		return nil, errors.New("the socket belongs to another user")
	}
	return c, nil
}

// Client returns an HTTP client that sends every request to the gateway that
// listens at path, whatever the host in its URL.
func Client(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return Dial(ctx, path) },
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     30 * time.Second,
	}}
}
