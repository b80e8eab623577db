package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// loadEnv, if set, makes the test binary write calls to the named store and
// print the id of each as soon as it is committed.
const loadEnv = "JUNCTOR_TEST_SQLITE_LOAD"

// leaseEnv, if set, makes the test binary acquire a lease for an hour and wait.
const leaseEnv = "JUNCTOR_TEST_SQLITE_LEASE"

func TestMain(m *testing.M) {
	if path := os.Getenv(loadEnv); path != "" {
		load(path)
		return
	}
	if path := os.Getenv(leaseEnv); path != "" {
		lease(path)
		return
	}
	os.Exit(m.Run())
}

func load(path string) {
	s, err := Open(context.Background(), store.Config{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	go s.Run(context.Background())
	var out sync.Mutex
	for w := range 16 {
		go func() {
			for i := 0; ; i++ {
				c := storetest.Call(i)
				if i%2 == 0 { // so that journals are filled and reused
					c = bigCall(i, 30<<10)
				}
				c.ID = fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if err := s.Append(context.Background(), c); err != nil {
					fmt.Println("error:", err)
					os.Exit(1)
				}
				// One write to the pipe: the parent reads all of it or nothing.
				out.Lock()
				os.Stdout.WriteString(c.ID + "\n")
				out.Unlock()
			}
		}()
	}
	select {}
}

func lease(path string) {
	s, err := Open(context.Background(), store.Config{Path: path}, slog.New(slog.DiscardHandler))
	if err == nil {
		_, _, err = s.Acquire(context.Background(), "chat/1", "process", time.Hour)
	}
	fmt.Println("taken", err)
	if err == nil { // block without a deadlock that the runtime would detect
		err = s.Run(context.Background())
	}
	fmt.Println("ended", err)
}

// TestLeaseEndsWithItsProcess kills a process that holds a lease. The lease can
// then be acquired immediately, but not before, through a store that was already
// open and through one opened later.
func TestLeaseEndsWithItsProcess(t *testing.T) {
	for _, early := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "junctor.db")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), leaseEnv+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "taken <nil>\n" {
			t.Fatalf("the other process: %q, %v", line, err)
		}
		acquire := func(s *Store) (string, bool) {
			l, held, err := s.Acquire(t.Context(), "chat/1", "me", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return l.Owner, held
		}
		var s *Store
		if early {
			s = openAt(t, store.Config{Path: path})
			if owner, held := acquire(s); held || owner != "process" {
				t.Errorf("the lease of a living process: %s, %v", owner, held)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		if !early {
			s = openAt(t, store.Config{Path: path})
		}
		if owner, held := acquire(s); !held {
			t.Errorf("the lease of a dead process is %s's", owner)
		}
		if names, err := filesOf(path, ownerMark); err != nil || len(names) != 1 {
			t.Errorf("files of owners: %q, %v; want this process's alone", names, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if names, err := filesOf(path, ownerMark); err != nil || len(names) != 0 {
			t.Errorf("files of owners after the end: %q, %v", names, err)
		}
	}
}

// TestKilledProcessLosesNoRecords kills a process under load repeatedly and
// checks that every acknowledged record is in the file.
func TestKilledProcessLosesNoRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	path := filepath.Join(t.TempDir(), "junctor.db")
	answered := map[string]bool{}
	rounds := 4
	if os.Getenv("JUNCTOR_SOAK") != "" {
		rounds = 50
	}
	for round := range rounds {
		ids := killOnce(t, path, 20+rand.IntN(600))
		for _, id := range ids {
			answered[id] = true
		}
		if len(ids) == 0 {
			t.Fatalf("round %d: nothing was written", round)
		}
		missing(t, path, answered, round)
	}
	t.Logf("%d answered calls over %d kills", len(answered), rounds)
}

// killOnce starts a writer, kills it after n acknowledged calls, and returns the
// ids of all calls that it acknowledged.
func killOnce(t *testing.T, path string, n int) (ids []string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), loadEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer guard.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if msg, bad := strings.CutPrefix(lines.Text(), "error:"); bad {
			t.Fatalf("the writer failed:%s", msg)
		}
		ids = append(ids, lines.Text())
		if len(ids) == n {
			cmd.Process.Kill() // SIGKILL
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
	return ids
}

// missing opens the file as the next process would, and reports every
// acknowledged call without a record.
func missing(t *testing.T, path string, answered map[string]bool, round int) {
	s, err := Open(context.Background(), store.Config{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("round %d: open after a kill: %v", round, err)
	}
	defer s.Close()
	found := map[string]bool{}
	var q store.CallQuery
	q.Forward, q.Limit = true, store.MaxLimit
	for {
		page, err := s.Calls(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			if c.Seq != q.AfterSeq+1 {
				t.Fatalf("round %d: sequence %d after %d", round, c.Seq, q.AfterSeq)
			}
			q.AfterSeq = c.Seq
			found[c.ID] = true
		}
	}
	for id := range answered {
		if !found[id] {
			t.Fatalf("round %d: the record of answered call %s is missing", round, id)
		}
	}
	var verdict string
	if err := s.read.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("round %d: integrity check: %s, %v", round, verdict, err)
	}
}
