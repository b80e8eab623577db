// Package pgtest starts a real PostgreSQL for tests.
//
// Each server has its own folder under /tmp and listens only on a Unix socket in
// it, so that any number of servers can run in parallel. It stops with the test
// process. The programs are those of the operating system's package (on Debian:
// apt install postgresql).
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// serverTimeout bounds starting and stopping a server on a busy machine.
const serverTimeout = 2 * time.Minute

// Server is one PostgreSQL server.
type Server struct {
	bin  string // folder of the programs
	dir  string // data, socket and log
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has exited
	log  *bytes.Buffer
	dbs  atomic.Int32
	set  []string // settings in addition to quick
}

// ErrMissing is the error of Start when PostgreSQL is not installed.
var ErrMissing = errors.New("no PostgreSQL programs found (on Debian: apt install postgresql)")

// Start creates a new cluster and starts it. Settings such as "fsync=on"
// override those that make it fast for tests.
func Start(settings ...string) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	// The path of a socket is limited to about a hundred bytes: not t.TempDir.
	dir, err := os.MkdirTemp("/tmp", "junctor-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, set: settings}
	if err := s.init(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := s.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// programs returns the folder with initdb and postgres: that of initdb in PATH,
// or else the last by name.
func programs() (string, error) {
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		dirs, _ := filepath.Glob(pattern) // the patterns are well formed
		found = append(found, dirs...)
	}
	slices.Sort(found)
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, filepath.Dir(path))
	}
	for _, dir := range slices.Backward(found) {
		_, err1 := os.Stat(filepath.Join(dir, "initdb"))
		_, err2 := os.Stat(filepath.Join(dir, "postgres"))
		if err1 == nil && err2 == nil {
			return dir, nil
		}
	}
	return "", ErrMissing
}

func (s *Server) init() error {
	if err := give(s.dir); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "junctor", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	cmd.Dir = s.dir
	asServer(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// quick are settings that make a temporary server fast.
var quick = []string{"listen_addresses=", "fsync=off", "shared_buffers=16MB", "max_connections=200", "max_wal_size=256MB"}

// Start starts a server that was stopped.
func (s *Server) Start() error {
	s.log = &bytes.Buffer{}
	args := []string{"-D", s.data(), "-k", s.dir}
	for _, setting := range slices.Concat(quick, s.set) {
		args = append(args, "-c", setting)
	}
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), args...)
	s.cmd.Dir = s.dir
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	asServer(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	s.done = done
	go func() {
		s.cmd.Wait()
		close(done)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.Exec(ctx, "postgres", "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("postgres ended at once: %s", s.log)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("postgres does not answer: %w", err), s.Stop())
		case <-tick.C:
		}
	}
}

// Stop stops the server and closes its connections. The data is kept.
func (s *Server) Stop() error {
	interrupt(s.cmd.Process)
	select {
	case <-s.done:
		return nil
	case <-time.After(serverTimeout):
		s.cmd.Process.Kill()
		<-s.done
		return errors.New("postgres had to be killed")
	}
}

// Log returns the log of a stopped server since its last start.
func (s *Server) Log() string { return s.log.String() }

// Close stops the server and removes its data.
func (s *Server) Close() error { return errors.Join(s.Stop(), os.RemoveAll(s.dir)) }

// URL returns the address of a database of the server.
func (s *Server) URL(database string) string {
	return "postgres://junctor@/" + url.PathEscape(database) + "?host=" + url.QueryEscape(s.dir)
}

// Exec runs a statement in a database.
func (s *Server) Exec(ctx context.Context, database, query string, args ...any) error {
	conn, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, query, args...)
	return err
}

// Create creates an empty database and returns its name.
func (s *Server) Create(ctx context.Context) (string, error) {
	name := fmt.Sprintf("test%d", s.dbs.Add(1))
	return name, s.Exec(ctx, "postgres", "CREATE DATABASE "+name)
}

// Database returns the URL of a new database of the server.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	defer cancel()
	name, err := s.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}

// Shared is a server that all tests of a package share. It is started on first
// use and stopped by Main.
type Shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests of a package and stops the shared server:
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if s.server != nil {
		if err := s.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return max(code, 1)
		}
	}
	return code
}

// Server returns the server. Without PostgreSQL the test is skipped; under CI
// it fails.
func (s *Shared) Server(t testing.TB) *Server {
	t.Helper()
	s.once.Do(func() { s.server, s.err = Start() })
	SkipOrFail(t, s.err)
	return s.server
}

// Database returns the URL of a new database.
func (s *Shared) Database(t testing.TB) string {
	t.Helper()
	return s.Server(t).Database(t)
}

// New starts a server for a single test, which may stop and start it.
func New(t testing.TB) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs PostgreSQL; not in make test-fast")
	}
	s, err := Start()
	SkipOrFail(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s
}

// SkipOrFail stops a test if err is set: it skips the test if PostgreSQL is not
// installed, except under CI, and fails it otherwise.
func SkipOrFail(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrMissing) && os.Getenv("CI") != "true":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}
