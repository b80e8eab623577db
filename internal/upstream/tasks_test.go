package upstream_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// taskLedger is a ledger of the stateless era whose tasks can be followed.
type taskLedger struct {
	*ledger
	followed chan []string // receives the tasks of each subscription
}

func (l *taskLedger) FollowTasks(_ context.Context, _ *mcpserver.Request, ids []string) ([]string, mcpserver.FollowFunc, error) {
	return ids, func(ctx context.Context, _ func(json.RawMessage)) {
		l.followed <- ids
		<-ctx.Done()
	}, nil
}

func (l *taskLedger) dial(context.Context) (mcpclient.Transport, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	near, far := mcp.Pipe()
	l.links = append(l.links, far)
	go func() { _ = l.server.ServeLink(context.Background(), far) }()
	return mcpclient.OverLink(near), nil
}

// TestTasksAreFollowedAfterReconnect: who follows a task is notified of its
// states until it stops, on whatever connection.
func TestTasksAreFollowedAfterReconnect(t *testing.T) {
	for _, mode := range []upstream.SessionMode{upstream.Shared, upstream.PerCaller} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &taskLedger{newLedger(), make(chan []string, 10)}
				l.server = mcpserver.New(mcpserver.Options{DrainTimeout: time.Millisecond}, l)
				r, _ := runLedger(t, mode, func(o *upstream.Options) {
					o.InProcess["ledger"], o.SessionIdle = l.dial, time.Minute
					o.Capabilities.Extensions = upstream.ForwardedExtensions
					o.Tasks = &sharedOwners{owners: map[string]string{"ledgertask-1": "a"}}
				})
				own, follow, err := r.FollowTasks(t.Context(), "ledger", "a", tool.Exchange{Protocol: mcp.Version20260728}, []string{"task-1", "task-2"})
				if err != nil || !slices.Equal(own, []string{"task-1"}) {
					t.Fatalf("FollowTasks = %q, %v", own, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); follow(ctx) }()
				state := func(status string) {
					t.Helper()
					select {
					case ids := <-l.followed:
						if !slices.Equal(ids, own) {
							t.Errorf("followed %q, want %q", ids, own)
						}
					case <-time.After(time.Hour):
						t.Fatalf("the tasks are not followed; %s", status)
					}
					params := `{"taskId":"task-1","status":"` + status + `"}`
					l.server.Notify(mcp.MethodTasks, json.RawMessage(params))
					r.eventually("the state "+status, func() bool { return r.received(status) })
				}
				state("working")
				l.cut(false)
				state("lost")
				if err := r.Restart("ledger"); err != nil {
					t.Fatal(err)
				}
				state("restarted")
				time.Sleep(time.Hour) // the session is idle, and stays
				if n := len(l.followed); n != 0 {
					t.Errorf("%d more subscriptions while idle", n)
				}
				cancel()
				<-done
			})
		})
	}
}

// TestEvictedFollowerStops: a session that made room for another one is not made
// again for the tasks that were followed on it.
func TestEvictedFollowerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &taskLedger{newLedger(), make(chan []string, 10)}
		l.server = mcpserver.New(mcpserver.Options{DrainTimeout: time.Millisecond}, l)
		r, _ := runLedger(t, upstream.PerCaller, func(o *upstream.Options) {
			o.InProcess["ledger"], o.MaxSessions = l.dial, 1
			o.Capabilities.Extensions = upstream.ForwardedExtensions
			o.Tasks = &sharedOwners{owners: map[string]string{"ledgertask-1": "a"}}
		})
		_, follow, err := r.FollowTasks(t.Context(), "ledger", "a", tool.Exchange{Protocol: mcp.Version20260728}, []string{"task-1"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); follow(ctx) }()
		<-l.followed
		r.mustAs("b", "tools/list", `{}`)
		select {
		case <-done:
		case <-time.After(time.Hour):
			t.Error("the evicted follower makes its session again")
		}
		cancel()
		<-done
	})
}
