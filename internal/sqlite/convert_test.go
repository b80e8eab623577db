package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// TestConvertOldCallLog checks that the rows and the journal of an older Junctor
// are converted with the same sequence numbers, and that records which a process
// of the older version writes later are appended.
func TestConvertOldCallLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junctor.db")
	old := openOld(t, path)
	const n = 1300
	for i := 1; i <= n; i++ {
		if i == 5 { // deleted, as by retention
			continue
		}
		old(int64(i), storetest.Call(i))
	}
	if err := os.WriteFile(path+journalMark+"old", frame(string(oldFields(storetest.Call(n+1)))), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, store.Config{Path: path})
	calls, err := s.Calls(context.Background(), store.CallQuery{Limit: store.MaxLimit})
	if err != nil || len(calls) != n || calls[0].Seq != 1 || calls[4].Seq != 6 || calls[n-1].Seq != n+1 {
		t.Fatalf("%d records after the upgrade, %v", len(calls), err)
	}
	for _, c := range []store.Call{calls[6], calls[n-1]} {
		want := storetest.Call(int(c.Seq))
		want.Seq, want.RequestID, want.Parent, want.CallerName, want.ArgBytes = c.Seq, "", "", "", 0
		if got, want := fmt.Sprintf("%+v", c), fmt.Sprintf("%+v", want); got != want {
			t.Errorf("a record became\n%s, was\n%s", got, want)
		}
	}
	old(1, storetest.Call(n+2)) // the older version starts again at 1 because its table is empty
	s.maintain(context.Background())
	c, err := s.Call(context.Background(), fmt.Sprintf("req-%d", n+2))
	if err != nil || c.Seq != n+2 {
		t.Errorf("what an older process wrote is record %d, %v; want %d", c.Seq, err, n+2)
	}
}

// openOld creates a database of the version before blocks and returns a function
// that writes a row to it.
func openOld(t *testing.T, path string) func(int64, store.Call) {
	t.Helper()
	db, err := connect(path, 1, "journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, dir, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(context.Background(), 4); err != nil {
		t.Fatal(err)
	}
	return func(seq int64, c store.Call) {
		t.Helper()
		_, err := db.Exec("INSERT INTO calls ("+oldColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			seq, c.ID, micros(c.Time), c.Duration.Microseconds(), string(c.Status), c.Server, c.Tool, c.Method, c.Face, c.Caller, c.Session,
			c.Kind, c.TraceID, c.Node, c.ResultBytes, c.Stages.String(), c.Error, string(c.Arguments), string(c.Result))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// oldFields encodes a record as the older Junctor wrote it to its journal.
func oldFields(c store.Call) (b []byte) {
	text := func(s string) { b = appendText(append(b, 's'), s) }
	number := func(n int64) { b = binary.AppendVarint(append(b, 'i'), n) }
	text(c.ID)
	number(micros(c.Time))
	number(c.Duration.Microseconds())
	for _, s := range []string{string(c.Status), c.Server, c.Tool, c.Method, c.Face, c.Caller, c.Session, c.Kind, c.TraceID, c.Node} {
		text(s)
	}
	number(int64(c.ResultBytes))
	text(c.Stages.String())
	text(c.Error)
	text(string(c.Arguments))
	text(string(c.Result))
	return b
}

// TestJoinBlocks checks that calls at a low rate do not leave a block each, and
// that joining changes nothing that can be read.
func TestJoinBlocks(t *testing.T) {
	s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")})
	ctx := context.Background()
	const n = 3*blockRecords + 10
	for i := range n {
		appendCalls(t, s, i)
		if err := s.flushOwn(); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		calls, err := s.Calls(ctx, store.CallQuery{Limit: store.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v", calls)
	}
	before := read()
	for range 2 {
		if err := s.joinBlocks(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var blocks int
	if err := s.read.QueryRow("SELECT count(*) FROM call_blocks").Scan(&blocks); err != nil || blocks != 3+10 {
		t.Errorf("%d blocks, %v; want three full ones and the last ten records", blocks, err)
	}
	if after := read(); after != before {
		t.Error("joining changed what is read")
	}
	appendCalls(t, s, n)
	if last, err := s.LastSeq(ctx); err != nil || last != n+1 {
		t.Errorf("the next number is %d, %v; want %d", last, err, n+1)
	}
}

// TestJoinLeavesLargeBlocks checks that joining records that compress well does
// not result in a block that is too large when decompressed.
func TestJoinLeavesLargeBlocks(t *testing.T) {
	s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")})
	ctx := context.Background()
	const n, size = 700, 16 << 10
	for i := range n {
		if err := s.Append(ctx, bigCall(i, size)); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if err := s.flushOwn(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if err := s.joinBlocks(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var blocks, most int
	if err := s.read.QueryRow("SELECT count(*), max(n) FROM call_blocks").Scan(&blocks, &most); err != nil {
		t.Fatal(err)
	}
	if most > blockBytes/size || blocks > n/4 {
		t.Errorf("%d blocks, the largest with %d records; want some joined, and at most %d records in one", blocks, most, blockBytes/size)
	}
	calls, err := s.Calls(ctx, store.CallQuery{Limit: store.MaxLimit})
	if err != nil || len(calls) != min(n, store.MaxLimit) {
		t.Errorf("%d records are left, %v; want %d", len(calls), err, n)
	}
}
