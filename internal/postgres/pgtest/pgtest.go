// Package pgtest starts a real PostgreSQL for tests.
//
// The server has a folder of its own under the system's temporary folder and
// listens on a Unix socket there alone, so that any number of them run beside
// each other. It dies with the test process. The programs are those of the
// operating system's package (on Debian: apt install postgresql).
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

// serverTimeout bounds the start and the end of a server on a busy machine.
const serverTimeout = 2 * time.Minute

// Server is one PostgreSQL server.
type Server struct {
	bin  string // folder of the programs
	dir  string // data, socket and log
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	log  *bytes.Buffer
	dbs  atomic.Int32
	set  []string // beyond our own settings
}

// ErrMissing is the error of Start when PostgreSQL is not installed.
var ErrMissing = errors.New("no PostgreSQL programs found (on Debian: apt install postgresql)")

// Start makes a new cluster and starts it. Settings such as "fsync=on" win over
// those that make it quick for tests.
func Start(settings ...string) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	// A socket's path has some hundred bytes at most: not t.TempDir.
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

// programs finds the folder with initdb and postgres, the newest there is.
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

// quick are settings for a temporary server.
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

// Stop ends the server, cutting its connections; its data stays.
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

// Log returns what a server that was stopped has logged since its start.
func (s *Server) Log() string { return s.log.String() }

// Close ends the server and removes its data.
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

// Create makes a new, empty database and returns its name.
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

// Shared is a server that all tests of a package share. It starts when the
// first asks; Main ends it.
type Shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests of a package and ends the shared server:
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

// New starts a server for one test alone, which may stop and start it.
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

// SkipOrFail ends a test that has no server: as skipped where PostgreSQL is
// missing, as failed everywhere else and under CI.
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
