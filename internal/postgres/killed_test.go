package postgres

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// loadEnv, if set, makes the test binary a node that writes calls to the
// database with that URL and prints the id of each as soon as it is committed.
const loadEnv = "JUNCTOR_TEST_POSTGRES_LOAD"

func load(url string) {
	s, err := Open(context.Background(), config(url), slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	var out sync.Mutex
	for w := range 16 {
		go func() {
			for i := 0; ; i++ {
				c := storetest.Call(i)
				c.ID = fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if err := s.Append(context.Background(), c); err != nil {
					fmt.Println("error:", err)
					os.Exit(1)
				}
				out.Lock()
				os.Stdout.WriteString(c.ID + "\n")
				out.Unlock()
			}
		}()
	}
	select {}
}

// TestKilledProcessLosesNoRecords kills nodes under load, two at a time on one
// database, and checks that every acknowledged call has its record and numbers
// have no gaps.
func TestKilledProcessLosesNoRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	server := shared.Server(t)
	url := server.Database(t)
	s := openAt(t, config(url))
	answered := map[string]bool{}
	for round := range 6 {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				ids := killOnce(t, url, 20+rand.IntN(400))
				mu.Lock()
				defer mu.Unlock()
				for _, id := range ids {
					answered[id] = true
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			t.FailNow()
		}
		found := map[string]bool{}
		q := store.CallQuery{Forward: true, Limit: store.MaxLimit}
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
	}
	t.Logf("%d answered calls over 12 kills", len(answered))
}

// killOnce starts a node, kills it after n acknowledged calls, and returns the
// ids of all calls that it acknowledged.
func killOnce(t *testing.T, url string, n int) (ids []string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), loadEnv+"="+url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return nil
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return nil
	}
	guard := time.AfterFunc(soon, func() { cmd.Process.Kill() })
	defer guard.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if msg, bad := strings.CutPrefix(lines.Text(), "error:"); bad {
			t.Errorf("the node failed:%s", msg)
			cmd.Process.Kill()
			break
		}
		ids = append(ids, lines.Text())
		if len(ids) == n {
			cmd.Process.Kill() // SIGKILL
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the node ended by itself")
	}
	return ids
}
