package upstream

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// maxTasksOfCaller bounds the remembered tasks of one caller; the oldest is
// evicted first.
const maxTasksOfCaller = 1000

// maxTaskID bounds the length of remembered task ids, because servers choose
// them and the store contains them too. Callers cannot query a task with a
// longer id.
const maxTaskID = 1 << 10

// TaskOwners remembers which caller a server's task belongs to, for all
// processes that reach the server and across restarts.
type TaskOwners interface {
	// ClaimTask records the caller as the owner of the task, unless it has
	// another owner.
	ClaimTask(ctx context.Context, server, id, caller string) error
	// TaskOwner returns the owner of the task; "" if there is none.
	TaskOwner(ctx context.Context, server, id string) (string, error)
}

// tasks records which callers own the tasks of a server. To the server a task
// belongs to a session or an account, and callers share both.
type tasks struct {
	mu     sync.Mutex
	owners map[string]string   // callers by task id
	order  map[string][]string // ids of each caller, oldest first
}

// add records the caller as the owner of a task, unless it has an owner.
func (t *tasks) add(id, caller string) (added bool) {
	if len(id) > maxTaskID {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.owners[id]; taken {
		return false
	}
	if t.owners == nil {
		t.owners, t.order = map[string]string{}, map[string][]string{}
	}
	t.owners[id] = caller
	ids := append(t.order[caller], id)
	if len(ids) > maxTasksOfCaller {
		delete(t.owners, ids[0])
		ids = ids[1:]
	}
	t.order[caller] = ids
	return true
}

func (t *tasks) owner(id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owners[id]
}

// claimTask records the caller as the owner of the task that a result names.
func (u *upstream) claimTask(ctx context.Context, caller string, result json.RawMessage) {
	for _, path := range [][]string{{"task", "taskId"}, {"taskId"}, {"_meta", mcp.MetaRelatedTask, "taskId"}} {
		id := rawjson.FieldString(result, path...)
		if id == "" || !u.tasks.add(id, caller) || u.s.opts.Tasks == nil {
			continue
		}
		if err := u.s.opts.Tasks.ClaimTask(ctx, u.name, id, caller); err != nil {
			u.s.log.WarnContext(ctx, "cannot store the owner of a task; other processes will not find it", "server", u.name, "err", err)
		}
	}
}

// taskOwner returns the owner of the task; "" if there is none.
func (u *upstream) taskOwner(ctx context.Context, id string) (string, error) {
	owner := u.tasks.owner(id)
	if owner != "" || id == "" || u.s.opts.Tasks == nil {
		return owner, nil
	}
	owner, err := u.s.opts.Tasks.TaskOwner(ctx, u.name, id)
	if err != nil {
		return "", &tool.Error{Kind: tool.Unavailable, Msg: "the owner of the task cannot be read because the store is unavailable; try again shortly", Err: err}
	}
	if owner != "" {
		u.tasks.add(id, owner)
	}
	return owner, nil
}

// requestTask returns the params of a tool call. In the handshake era it adds
// the request to run the call as a task, if the tool cannot be called
// otherwise.
func (u *upstream) requestTask(c *conn, params json.RawMessage) json.RawMessage {
	names := u.taskTools.Load()
	if names == nil || c.client.Info().Stateless() || !(*names)[rawjson.FieldString(params, "name")] {
		return params
	}
	return rawjson.SetField(params, emptyResult, "task")
}

// taskTools returns the names of the tools that can only be called as tasks.
func taskTools(definitions []tool.Definition) *map[string]bool {
	names := map[string]bool{}
	for _, d := range definitions {
		if rawjson.FieldString(d.Raw, "execution", "taskSupport") == "required" {
			names[d.Name.Tool] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &names
}

// doTask sends a request about tasks. It treats tasks of other callers as
// nonexistent.
func (u *upstream) doTask(ctx context.Context, c *conn, r tool.Request) (json.RawMessage, error) {
	resume := r.Exchange.Resume && r.Method == mcp.MethodTasksResult
	if !resume && c.client.Info().Stateless() {
		switch r.Method {
		case mcp.MethodTasksList, mcp.MethodTasksResult:
			return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: r.Method + " is not part of protocol version " + mcp.Version20260728}
		}
		if mcp.Stateless(r.Exchange.Protocol) && rawjson.Field(r.Exchange.Capabilities, "extensions", mcp.ExtensionTasks) == nil {
			return nil, mcp.MissingTasksExtension()
		}
	}
	switch {
	case c.login != "": // the server itself restricts the login to its own tasks
	case r.Method == mcp.MethodTasksList:
		result, err := c.client.Do(ctx, r)
		if err != nil {
			return nil, err
		}
		return u.ownTasks(ctx, r.Caller, result)
	default:
		owner, err := u.taskOwner(ctx, rawjson.FieldString(r.Params, "taskId"))
		if err != nil {
			return nil, err
		}
		if owner != r.Caller {
			return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "there is no such task"}
		}
	}
	if resume {
		working := rawjson.SetField(r.Params, json.RawMessage(`"working"`), "status")
		return c.client.AwaitTask(ctx, r, rawjson.SetField(rawjson.SetField(working, json.RawMessage(`"task"`), "resultType"), working, "task"))
	}
	return c.client.Do(ctx, r)
}

// ownTasks removes the tasks of other callers from a list.
func (u *upstream) ownTasks(ctx context.Context, caller string, result json.RawMessage) (json.RawMessage, error) {
	list := []byte{'['}
	for item := range rawjson.Elements(rawjson.Field(result, "tasks")) {
		owner, err := u.taskOwner(ctx, rawjson.FieldString(item, "taskId"))
		if err != nil {
			return nil, err
		}
		if owner != caller {
			continue
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, item...)
	}
	return rawjson.SetField(result, append(list, ']'), "tasks"), nil
}

// FollowTasks returns those of the tasks that the caller owns, and a function
// that subscribes to their states on a server with the tasks extension until
// the function's context is done, and again after a reconnect. Both are nil if
// the caller owns none, or if another process runs the server.
func (s *Supervisor) FollowTasks(ctx context.Context, server, caller string, ex tool.Exchange, ids []string) (own []string, follow func(context.Context), err error) {
	u := s.find(server)
	if u == nil {
		return nil, nil, notFound(server)
	}
	if u.elsewhere() != "" {
		return nil, nil, nil // the caller has to poll
	}
	own, err = u.tasksOf(ctx, caller, ids)
	if err != nil || len(own) == 0 {
		return nil, nil, err
	}
	return own, func(ctx context.Context) {
		s.keepFollowing(ctx, server, tool.Request{Method: mcp.MethodListen, Caller: caller, Exchange: ex}, own)
	}, nil
}

// tasksOf returns those of the tasks that the caller owns.
func (u *upstream) tasksOf(ctx context.Context, caller string, ids []string) (own []string, err error) {
	personal := u.config().PersonalLogins()
	for _, id := range ids {
		if personal { // the server checks the owner
			own = append(own, id)
			continue
		}
		owner, err := u.taskOwner(ctx, id)
		if err != nil {
			return nil, err
		}
		if owner == caller {
			own = append(own, id)
		}
	}
	return own, nil
}

// keepFollowing follows tasks until ctx is done or the server is removed. It
// continues on the next connection when one is lost, with backoff, but not when
// the session was evicted: two followers would evict each other repeatedly.
func (s *Supervisor) keepFollowing(ctx context.Context, server string, r tool.Request, ids []string) {
	retry := &backoff.ExponentialBackOff{InitialInterval: minRetryDelay, Multiplier: 2, RandomizationFactor: 0.5, MaxInterval: maxRetryDelay}
	retry.Reset()
	for ctx.Err() == nil {
		u := s.find(server) // a restart replaces the upstream
		if u == nil {
			return
		}
		began := time.Now()
		if evicted := u.followTasks(ctx, r, ids); evicted {
			return
		}
		if time.Since(began) >= stableAfter {
			retry.Reset()
		}
		sleep(ctx, retry.NextBackOff())
	}
}

// followTasks follows those of the tasks that the caller owns, until the
// connection is lost or ctx is done. It reports whether the connection was
// evicted.
func (u *upstream) followTasks(ctx context.Context, r tool.Request, ids []string) (evicted bool) {
	if !u.awaitConnected(ctx) {
		return false
	}
	own, err := u.tasksOf(ctx, r.Caller, ids)
	if err != nil || len(own) == 0 {
		return false
	}
	c, err := u.ready(ctx, r)
	if err != nil {
		return false
	}
	c.followers.Add(1)
	stop := c.client.FollowTasks(own)
	c.leave()
	select {
	case <-c.client.Done():
	case <-ctx.Done():
	}
	stop()
	c.followers.Add(-1)
	return c.evicted.Load()
}

// awaitConnected waits until the shared connection is established, without
// requesting an attempt to connect. It returns false if ctx is done or the
// upstream has stopped before that.
func (u *upstream) awaitConnected(ctx context.Context) bool {
	for {
		u.mu.Lock()
		connected := u.cfg.PersonalLogins() || u.conn != nil && u.conn.client.Err() == nil
		changed := u.changed
		u.mu.Unlock()
		if connected {
			return true
		}
		select {
		case <-changed:
		case <-u.gone:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// recipient returns the receiver of a notification that belongs to no call: one
// caller, all of them ("" and true), or none. Notifications that may concern
// one caller's work are for that caller only.
func (u *upstream) recipient(c *conn, method string, params json.RawMessage) (caller string, ok bool) {
	switch {
	case c.login != "":
		return c.caller, true
	case method == mcp.MethodTasks, strings.HasPrefix(method, mcp.MethodTasks+"/"):
		caller = u.tasks.owner(rawjson.FieldString(params, "taskId"))
		return caller, caller != ""
	case c.caller != "":
		return c.caller, true
	case strings.HasSuffix(method, "/list_changed"), method == mcp.MethodResourceUpdated:
		return "", true // a change of a resource goes to subscribers only
	}
	switch id := u.firstCaller.Load(); {
	case id == nil:
		return "", true // without a caller it concerns no one's work
	case u.manyCallers.Load():
		return "", false
	default:
		return *id, true
	}
}

// recordCaller records the caller of the upstream.
func (u *upstream) recordCaller(caller string) {
	if caller == "" || u.manyCallers.Load() {
		return
	}
	if u.firstCaller.Load() == nil {
		first := caller
		u.firstCaller.CompareAndSwap(nil, &first)
	}
	if *u.firstCaller.Load() != caller {
		u.manyCallers.Store(true)
	}
}
