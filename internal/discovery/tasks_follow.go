package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// announceTimeout bounds the wait until a task's end has been announced.
const announceTimeout = 10 * time.Second

// announceTask notifies a session of the handshake era of each new status of a
// task. The returned function waits until the end of the task has been
// announced; it must be called after the task has ended.
func (f *Face) announceTask(ctx context.Context, session *mcpserver.Session, id string) (announced func()) {
	if session == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := string(waiting.Working) // the status in the response to the call
		f.opts.Waiting.Follow(ctx, []string{id}, func(r *waiting.Record) {
			task := taskOf(r, false)
			if status := rawjson.FieldString(task, "status"); status != last {
				last = status
				session.Notify(mcp.MethodTasksStatus, task)
			}
		})
	}()
	return func() {
		defer stop()
		select {
		case <-done:
		case <-time.After(announceTimeout): // the store is unavailable
		}
	}
}

// followTasks returns the caller's tasks among ids and a function that reports
// each of their states, starting with the current one.
func (f *Face) followTasks(ctx context.Context, r *mcpserver.Request, ids []string) ([]string, mcpserver.FollowFunc, error) {
	if f.opts.Waiting == nil {
		return nil, nil, nil
	}
	var own []string
	for _, id := range ids {
		switch _, err := f.ownTask(ctx, r, id); {
		case err == nil:
			own = append(own, id)
		case !errors.Is(err, errNoTask):
			return nil, nil, err
		}
	}
	return own, func(ctx context.Context, notify func(json.RawMessage)) {
		f.opts.Waiting.Follow(ctx, own, func(w *waiting.Record) { notify(detailed(w, true)) })
	}, nil
}

// FollowTasks implements mcpserver.TaskFollower.
func (v *directView) FollowTasks(ctx context.Context, r *mcpserver.Request, ids []string) ([]string, mcpserver.FollowFunc, error) {
	return v.face.followTasks(ctx, r, ids)
}

// FollowTasks implements mcpserver.TaskFollower.
func (v *metaView) FollowTasks(ctx context.Context, r *mcpserver.Request, ids []string) ([]string, mcpserver.FollowFunc, error) {
	return v.face.followTasks(ctx, r, ids)
}

// FollowTasks implements mcpserver.TaskFollower. The server sends the
// notifications, which [Face.Notified] forwards.
func (s *transparentView) FollowTasks(ctx context.Context, r *mcpserver.Request, ids []string) ([]string, mcpserver.FollowFunc, error) {
	own, follow, err := s.face.opts.Upstreams.FollowTasks(ctx, s.name, r.Caller.ID, tool.Exchange{
		Capabilities: r.Exchange.Capabilities, Protocol: r.Protocol, PassInput: true, Transparent: true,
	}, ids)
	return own, func(ctx context.Context, _ func(json.RawMessage)) { follow(ctx) }, err
}
