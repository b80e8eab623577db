package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
)

func TestStages(t *testing.T) {
	for name, tt := range map[string]struct {
		in   store.Stages
		text string
	}{
		"none": {nil, ""},
		"one":  {store.Stages{{"policy", 12 * time.Microsecond}}, "policy=12"},
		"many": {store.Stages{{"a", 0}, {"b", time.Second}}, "a=0 b=1000000"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.in.String(); got != tt.text {
				t.Errorf("String = %q, want %q", got, tt.text)
			}
			back, err := store.ParseStages(tt.text)
			if err != nil || back.String() != tt.text || len(back) != len(tt.in) {
				t.Errorf("ParseStages(%q) = %v, %v", tt.text, back, err)
			}
		})
	}
	for _, bad := range []string{"x", "x=", "=1", "x=1 y", "x=1.5"} {
		if _, err := store.ParseStages(bad); err == nil {
			t.Errorf("ParseStages(%q) succeeded", bad)
		}
	}
}

func TestCallJSON(t *testing.T) {
	c := store.Call{
		Seq: 7, ID: "r", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Duration: 1234567 * time.Microsecond,
		Face: "cli", Caller: "local", Session: "s", Server: "a", Tool: "t", Method: "tools/call", Status: store.StatusFailed,
		Kind: "TIMEOUT", Error: "late", Arguments: json.RawMessage(`{"a":1}`), Result: json.RawMessage(`[]`), ResultBytes: 2,
		TraceID: "tr", Node: "n", Stages: store.Stages{{"x", 1500 * time.Microsecond}},
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"seq":7,"id":"r","time":"2026-01-02T03:04:05Z","durationMs":1234.567,"face":"cli","caller":"local","sessionId":"s","server":"a","tool":"t",` +
		`"method":"tools/call","status":"failed","code":"TIMEOUT","error":"late","arguments":{"a":1},"result":[],"resultBytes":2,"traceId":"tr","node":"n",` +
		`"stages":[{"name":"x","tookMs":1.5}]}`
	if string(b) != want {
		t.Errorf("JSON:\n got %s\nwant %s", b, want)
	}
	var back store.Call
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(back); err != nil || string(again) != want || back.Duration != c.Duration {
		t.Errorf("read back: %s, %v", again, err)
	}
	if err := json.Unmarshal([]byte(`{"seq":"x"}`), &back); err == nil {
		t.Error("a sequence that is no number was read")
	}
}

func TestRawListsRoundTrip(t *testing.T) {
	in := []json.RawMessage{[]byte(`{ "a" : "<&>" }`), []byte(`1`), []byte(`null`)}
	out, err := store.SplitRaw(store.JoinRaw(in))
	if err != nil || len(out) != 3 || string(out[0]) != string(in[0]) || string(out[2]) != "null" {
		t.Errorf("SplitRaw(JoinRaw) = %s, %v", out, err)
	}
	for _, empty := range []string{"", "[]"} {
		if out, err := store.SplitRaw([]byte(empty)); out != nil || err != nil {
			t.Errorf("SplitRaw(%q) = %v, %v", empty, out, err)
		}
	}
	if _, err := store.SplitRaw([]byte(`{`)); err == nil {
		t.Error("SplitRaw of no list succeeded")
	}
}

func TestCallQueryLimits(t *testing.T) {
	for limit, want := range map[int]int{-1: store.DefaultLimit, 0: store.DefaultLimit, 5: 5, store.MaxLimit + 1: store.MaxLimit} {
		if got := (store.CallQuery{Limit: limit}).Rows(); got != want {
			t.Errorf("limit %d: %d rows, want %d", limit, got, want)
		}
	}
}

func testKey(n byte) []byte { return bytes.Repeat([]byte{n}, store.KeySize) }

func TestSealer(t *testing.T) {
	s, err := store.NewSealer(testKey(1))
	if err != nil {
		t.Fatal(err)
	}
	sealed := s.Seal("token", []byte("hush"))
	if bytes.Contains(sealed, []byte("hush")) {
		t.Error("a sealed secret shows the secret")
	}
	if bytes.Equal(sealed, s.Seal("token", []byte("hush"))) {
		t.Error("sealing twice gives the same bytes: the nonce is not fresh")
	}
	if got, err := s.Open("token", sealed); err != nil || string(got) != "hush" {
		t.Errorf("Open = %q, %v", got, err)
	}
	if got, err := s.Open("empty", s.Seal("empty", nil)); err != nil || len(got) != 0 {
		t.Errorf("Open of nothing = %q, %v", got, err)
	}
	if _, err := s.Open("other name", sealed); !errors.Is(err, store.ErrSealed) {
		t.Errorf("opened under another name: error = %v, want ErrSealed", err)
	}
	for i := range sealed {
		altered := bytes.Clone(sealed)
		altered[i] ^= 1
		if _, err := s.Open("token", altered); !errors.Is(err, store.ErrSealed) {
			t.Fatalf("byte %d altered: error = %v, want ErrSealed", i, err)
		}
	}
	for n := range len(sealed) {
		if _, err := s.Open("token", sealed[:n]); !errors.Is(err, store.ErrSealed) {
			t.Fatalf("cut to %d bytes: error = %v, want ErrSealed", n, err)
		}
	}

	turned, err := store.NewSealer(testKey(2), testKey(1))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := turned.Open("token", sealed); err != nil || string(got) != "hush" {
		t.Errorf("with the key as an older one: %q, %v", got, err)
	}
	if !turned.Stale(sealed) || turned.Stale(turned.Seal("token", nil)) || !turned.Stale(nil) {
		t.Error("Stale does not tell old from new")
	}
	other, err := store.NewSealer(testKey(3))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open("token", sealed); !errors.Is(err, store.ErrSealed) {
		t.Errorf("with another key: error = %v, want ErrSealed", err)
	}
	for _, keys := range [][][]byte{{nil}, {testKey(1)[:31]}, {testKey(1), {1}}} {
		if _, err := store.NewSealer(keys[0], keys[1:]...); err == nil || !strings.Contains(err.Error(), "openssl") {
			t.Errorf("a key of the wrong size: error = %v, want advice", err)
		}
	}
}

func TestParseKey(t *testing.T) {
	hexed := strings.Repeat("ab", 32)
	for name, text := range map[string]string{
		"hex":      hexed,
		"base64":   "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=",
		"no pad":   "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s",
		"newlines": "\n q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=\n",
	} {
		if got, err := store.ParseKey(text); err != nil || !bytes.Equal(got, testKey(0xab)) {
			t.Errorf("%s: ParseKey = %x, %v", name, got, err)
		}
	}
	for _, bad := range []string{"", "secret", hexed[2:], "q6ur"} {
		if _, err := store.ParseKey(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseKey(%q) = %v, want an error without the text", bad, err)
		}
	}
}

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "secret.key")
	var wg sync.WaitGroup
	keys := make([][]byte, 8)
	for i := range keys { // processes that start simultaneously agree on a key
		wg.Go(func() {
			k, err := store.KeyFile(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = k
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != store.KeySize || !bytes.Equal(k, keys[0]) {
			t.Fatalf("keys differ: %x, %x", k, keys[0])
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := store.KeyFile(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a file that others may read: %v", err)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.key")
	if err := os.WriteFile(bad, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, filepath.Join(bad, "x"), t.TempDir()} {
		if _, err := store.KeyFile(path); err == nil {
			t.Errorf("KeyFile(%s) succeeded", path)
		}
	}
}

func openStore(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), store.Config{Path: sqlitetest.Create(t, filepath.Join(t.TempDir(), "junctor.db"))}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestVaultEncryptsAndRotatesKeys(t *testing.T) {
	ctx, s := context.Background(), openStore(t)
	sealer := func(keys ...byte) *store.Sealer {
		var older [][]byte
		for _, k := range keys[1:] {
			older = append(older, testKey(k))
		}
		out, err := store.NewSealer(testKey(keys[0]), older...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	v := store.NewVault(s, sealer(1))
	if _, _, err := v.Get(ctx, "a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of none: error = %v", err)
	}
	version, err := v.Put(ctx, "a", []byte("hush"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Put(ctx, "a", []byte("late"), 0); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Put over what is there: error = %v", err)
	}
	if plain, got, err := v.Get(ctx, "a"); string(plain) != "hush" || got != version || err != nil {
		t.Errorf("Get = %q, %d, %v", plain, got, err)
	}
	if raw, err := s.Value(ctx, store.SpaceSecrets, "a"); err != nil || bytes.Contains(raw.Data, []byte("hush")) {
		t.Errorf("the store sees the secret: %q, %v", raw.Data, err)
	}

	turned := store.NewVault(s, sealer(2, 1))
	if _, err := turned.Put(ctx, "new", []byte("n"), 0); err != nil {
		t.Fatal(err)
	}
	if n, err := turned.Reseal(ctx); n != 1 || err != nil {
		t.Errorf("Reseal = %d, %v; want the old one", n, err)
	}
	after := store.NewVault(s, sealer(2))
	if plain, _, err := after.Get(ctx, "a"); string(plain) != "hush" || err != nil {
		t.Errorf("Get with the new key alone = %q, %v", plain, err)
	}
	if n, err := store.NewVault(s, sealer(3)).Reseal(ctx); n != 0 || !errors.Is(err, store.ErrSealed) {
		t.Errorf("Reseal without the key = %d, %v", n, err)
	}
	list, err := after.List(ctx)
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[0].Updated.IsZero() {
		t.Errorf("List = %+v, %v", list, err)
	}
	for range 2 {
		if err := after.Delete(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := after.List(ctx); !errors.Is(err, store.ErrClosed) {
		t.Errorf("List of a closed store: %v", err)
	}
	if _, err := after.Reseal(ctx); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Reseal of a closed store: %v", err)
	}
}

func TestHubWakesWatchers(t *testing.T) {
	var h store.Hub
	ctx, cancel := context.WithCancel(context.Background())
	if h.Watched() {
		t.Error("a new hub is watched")
	}
	a, b := h.Watch(ctx, "a"), h.Watch(ctx, "b")
	h.Wake("a")
	h.Wake("a") // not received yet: no second signal
	h.Wake("nobody")
	<-a
	select {
	case <-a:
		t.Error("two signals for what should be one")
	case <-b:
		t.Error("a signal for another topic")
	default:
	}
	h.WakeAll()
	<-a
	<-b
	cancel()
	for h.Watched() { // the watchers are removed asynchronously
		runtime.Gosched()
	}
	h.Wake("a")
}

func TestKeyValid(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		k    store.Key
		want bool
	}{
		"plain":   {store.Key{}, true},
		"expires": {store.Key{Expires: now.Add(time.Second)}, true},
		"expired": {store.Key{Expires: now}, false},
		"revoked": {store.Key{Revoked: now.Add(-time.Second)}, false},
	} {
		if got := tt.k.Valid(now); got != tt.want {
			t.Errorf("%s: Valid = %v, want %v", name, got, tt.want)
		}
	}
}
