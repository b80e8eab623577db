// Package storetest is the contract of package store as a test suite, which
// every engine passes.
//
// It uses only the interfaces, so that it cannot treat any engine specially.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"junctor/internal/store"
)

// Opener opens one more handle on a database, as another process would. The
// handle is closed when the test ends.
type Opener func(t testing.TB) store.Store

// Run runs the suite. fresh returns the opener of a new, empty database.
func Run(t *testing.T, fresh func(t testing.TB) Opener) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Opener)
	}{
		{"append and read", appendAndRead},
		{"call bytes", callBytes},
		{"call text", callText},
		{"call queries", callQueries},
		{"call paging", callPaging},
		{"call by request id", callByRequestID},
		{"call brief", callBrief},
		{"call search", callSearch},
		{"call statistics", callStats},
		{"call statistics by interval", callIntervals},
		{"append concurrently", appendConcurrently},
		{"append canceled", appendCanceled},
		{"reopen", reopen},
		{"tail", tail},
		{"tail filtered", tailFiltered},
		{"tail across handles", tailAcross},
		{"tail ends", tailEnds},
		{"catalogues", catalogues},
		{"fingerprints", fingerprints},
		{"keys", keys},
		{"key conflicts", keyConflicts},
		{"values", values},
		{"value versions", valueVersions},
		{"value expiry", valueExpiry},
		{"value races", valueRaces},
		{"sessions", sessions},
		{"session updates", sessionUpdates},
		{"messages", messages},
		{"events", events},
		{"leases", leases},
		{"lease races", leaseRaces},
		{"node messages", nodeMessages},
		{"order of node messages", nodeMessageOrder},
		{"import", importing},
		{"changes", changes},
		{"changes across handles", changesAcross},
		{"closed", closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, fresh(t))
		})
	}
	t.Run("copy", func(t *testing.T) {
		t.Parallel()
		Copy(t, fresh(t)(t), fresh(t)(t))
	})
}

// timeout bounds every wait. Only a broken engine reaches it.
const timeout = 5 * time.Minute

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// running opens a handle and calls its Run until the test ends.
func running(t testing.TB, open Opener) store.Store {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
	return s
}

// eventually polls ok until it returns true; how long that takes is up to the
// engine.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx := deadline(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, timeout)
		}
	}
}

// must returns a function that returns v, or fails the test if err is set.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// equal compares got and want as JSON. Times are expected with the microsecond
// precision of the engines.
func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := show(got), show(want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v)
	}
	return string(b)
}

// at returns a time n seconds after start, recent enough for every retention.
func at(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }

var start = time.Now().UTC().Add(-time.Hour).Truncate(time.Second).Add(123456 * time.Microsecond)
