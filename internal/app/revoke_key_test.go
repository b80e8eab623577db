package app

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/audit"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream/upstreamtest"
	"junctor/internal/waiting"
)

// Revoking a key ends its logins to servers and the tasks of servers that a
// process has taken over from another.
func TestRevokedKeyEndsLoginsAndTasks(t *testing.T) {
	cfg := upstreamtest.Listen(t, upstreamtest.Script{OldEra: true, Mute: "tasks/result"}).Config("up")
	r := start(t, fmt.Sprintf(`{"mcpServers":{"up":%s},"toolRules":[{"pattern":["up:echo"],"select":".a"}]}`, entry(t, cfg)), t.TempDir())
	r.connected("up")
	r.makeKey("rv")
	keys, err := r.store.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	caller := "key:" + keys[0].ID
	login := store.Value{Space: store.SpaceSecrets, Name: "oauth/token/up/" + base64.RawURLEncoding.EncodeToString([]byte(caller)), Data: []byte("sealed")}
	if _, err := r.store.PutValue(t.Context(), login, 0); err != nil {
		t.Fatal(err)
	}
	if err := (store.TaskOwners{Values: r.store}).ClaimTask(t.Context(), "up", "7", caller); err != nil {
		t.Fatal(err)
	}
	record, err := r.App.waiting.Start(t.Context(), waiting.StartOptions{Caller: tool.Caller{ID: caller}, Tool: "up:echo"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := record.Context(t.Context())
	defer stop()
	resumed := make(chan error, 1)
	go func() {
		_, err := r.resumeTask(ctx, &waiting.Record{Caller: caller, Tool: "up:echo", Task: tool.ServerTask{Server: "up", ID: "7"}}, nil)
		resumed <- err
	}()
	eventually(t, "the request for the task's result", func() bool { return r.executor.InFlight() > 0 || len(resumed) > 0 })
	if len(resumed) > 0 {
		t.Fatalf("the task ended before the key: %v", <-resumed)
	}
	if code, body := r.ask("DELETE", "/api/keys/rv", ""); code != 200 {
		t.Fatalf("revoke: %d %s", code, body)
	}
	if err := <-resumed; !errors.Is(err, tool.ErrCredentialEnded) {
		t.Errorf("the task of a revoked key ended with %v", err)
	}
	eventually(t, "the end of the login of a revoked key", func() bool {
		_, err := r.store.Value(t.Context(), login.Space, login.Name)
		return errors.Is(err, store.ErrNotFound)
	})
	eventually(t, "the audit entry of the login, by the gateway", func() bool {
		list, err := r.audit.Entries(t.Context(), audit.Query{Action: "login.end"})
		return err == nil && len(list) == 1 && list[0].Actor == "gateway" && list[0].Target == "up" && strings.Contains(string(list[0].Detail), caller)
	})

	// The result of a resumed task is reduced to what the rules select.
	whole := tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"{\"a\":1,\"b\":2}"}]}`)}
	if got := r.selectByRule(context.Background(), "up:echo", whole); string(got.Raw) != `{"content":[{"type":"text","text":"1"}]}` {
		t.Errorf("selected: %s", got.Raw)
	}
}

// Revoking a key also ends a sign-in that it has begun.
func TestRevokedKeyCompletesNoSignIn(t *testing.T) {
	service := refusing(t)
	r := start(t, fmt.Sprintf(`{"mcpServers":{"up":{"url":%q,"oauth":{"clientId":"c","authorizationUrl":%q,"tokenUrl":%q,"per":"caller"}}}}`,
		service+"/mcp", service+"/login", service+"/token"), t.TempDir())
	r.makeKey("rv")
	keys, err := r.store.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address, err := r.Logins().Begin(tool.WithCaller(t.Context(), tool.Caller{ID: "key:" + keys[0].ID}), "up")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := r.ask("DELETE", "/api/keys/rv", ""); code != 200 {
		t.Fatalf("revoke: %d %s", code, body)
	}
	if _, err := r.Logins().Complete(t.Context(), url.Values{"state": {u.Query().Get("state")}, "code": {"x"}}); tool.KindOf(err) != tool.Denied {
		t.Errorf("the sign-in of a revoked key: %v", err)
	}
	// A new key with the same name is another caller.
	if c, err := r.CallerNamed(t.Context(), "rv"); err == nil {
		t.Errorf("CallerNamed of a revoked key = %q", c.ID)
	}
	r.makeKey("rv")
	if c, err := r.CallerNamed(t.Context(), "rv"); err != nil || c.ID == "key:"+keys[0].ID {
		t.Errorf("CallerNamed = %q, %v; the revoked key is %s", c.ID, err, keys[0].ID)
	}
}

// keysAway is a store that fails to read the keys the first time.
type keysAway struct {
	store.Store
	reads int
}

func (s *keysAway) Watch(context.Context, string) <-chan struct{} { return nil }

func (s *keysAway) Keys(context.Context) ([]store.Key, error) {
	if s.reads++; s.reads == 1 {
		return nil, errors.New("the database is away")
	}
	return []store.Key{{ID: "1", Revoked: time.Now()}}, nil
}

// Work of a key that was revoked while the store was unavailable is canceled
// once the key can be read.
func TestRevokedKeyIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		(&App{store: &keysAway{}}).cancelWithKey(ctx, "key:1", cancel)
		if cause := context.Cause(ctx); !errors.Is(cause, tool.ErrCredentialEnded) {
			t.Errorf("the caller's context ended with %v", cause)
		}
	})
}
