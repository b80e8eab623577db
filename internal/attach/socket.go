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
var ErrRunning = errors.New("a gateway with this configuration is running already")

// ErrNotRunning means that no gateway with this configuration is running.
var ErrNotRunning = errors.New("no gateway with this configuration is running")

// maxPath is the longest path that a socket may have everywhere.
const maxPath = 103

// Path is where the gateway of a configuration listens: a name made from the
// configuration's own path and from environment, which identifies the values
// that it took from the environment, in the first folder in which it is short
// enough. An empty configuration stands for none. The name reveals neither.
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
	return "", fmt.Errorf("no folder is short enough for a socket (%d bytes): %q", maxPath, folders)
}

// suffix ends the name of every socket.
const suffix = ".sock"

// sameFile matches the names of the sockets of one configuration file, which
// differ in what the gateways took from the environment.
var sameFile = regexp.MustCompile(`^(junctor-[0-9a-f]{16})(-[0-9a-f]{10})?\.sock$`)

// OtherSockets returns the sockets of the same configuration file as path's
// that are named by other values of its variables. Whether anyone listens is
// not known.
func OtherSockets(path string) []string {
	own := sameFile.FindStringSubmatch(filepath.Base(path))
	if own == nil {
		return nil
	}
	entries, _ := os.ReadDir(filepath.Dir(path)) // a folder that is not there has none
	var found []string
	for _, e := range entries {
		if m := sameFile.FindStringSubmatch(e.Name()); m != nil && m[1] == own[1] && m[0] != own[0] {
			found = append(found, filepath.Join(filepath.Dir(path), m[0]))
		}
	}
	return found
}

// resolve follows the symbolic links of a path, also of a file that is yet to
// be written.
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

// Listen opens the socket at path for this user alone. A socket that nobody
// listens on any more is taken over; when somebody does it is ErrRunning.
// Closing the listener removes the socket. What killed gateways of the same file
// have left is removed.
func Listen(path string) (net.Listener, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the socket: %w", err)
	}
	if err := checkFolder(folder); err != nil {
		return nil, err
	}
	// The lock, not the socket, shows whether a gateway runs: it is released
	// with its process.
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
		return nil, fmt.Errorf("close the socket to others: %w", err)
	}
	return &listener{Listener: ln, unlock: sync.OnceFunc(func() { unlock(lock) })}, nil
}

// lockFile takes the lock of a file for as long as the process lives. The file
// is removed when the lock is given back, so that names that are not used again
// leave nothing; a lock of a file that was removed meanwhile counts for nothing.
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

// unlock removes the file while it is locked. Where the system does not remove
// open files, it stays.
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

// listener is a socket with the lock that makes it the only one. It takes
// connections of this user alone.
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

// dialTimeout is how long a gateway may take to accept.
const dialTimeout = 2 * time.Second

// Dial connects to the gateway that listens at path; ErrNotRunning when none does.
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
		return nil, ErrNotRunning // left behind by a gateway that was killed
	}
	if !sameUser(c) {
		_ = c.Close()
		return nil, errors.New("the socket belongs to another user")
	}
	return c, nil
}

// Client returns an HTTP client whose every request goes to the gateway that
// listens at path, whatever the host in its URL.
func Client(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return Dial(ctx, path) },
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     30 * time.Second,
	}}
}
