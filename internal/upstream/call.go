package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// maxWaiting bounds the calls of one upstream that wait for a slot under
// maxConcurrent.
const maxWaiting = 1024

type clientIPKey struct{}

// SetClientIP returns a context whose calls send the caller's address to
// remote upstreams, if forwardClientIp allows it. The rule of [tool.SetValue]
// applies.
func SetClientIP(ctx context.Context, ip string) context.Context {
	return tool.SetValue(ctx, clientIPKey{}, ip)
}

// do executes a request. If another process runs the server, that process
// executes it.
func (u *upstream) do(ctx context.Context, r tool.Request) (json.RawMessage, error) {
	if u.s.opts.Singletons == nil {
		return u.doHere(ctx, r)
	}
	owner := u.elsewhere()
	if owner == "" {
		result, err := u.doHere(ctx, r)
		if !errors.Is(err, errElsewhere) {
			return result, err
		}
		if owner = u.elsewhere(); owner == "" { // it moved back meanwhile
			return nil, err
		}
	}
	return u.s.opts.Singletons.Do(ctx, owner, u.name, r)
}

func (u *upstream) doHere(ctx context.Context, r tool.Request) (result json.RawMessage, err error) {
	if r.Method == mcp.MethodUnsubscribe {
		defer func() {
			if err != nil { // so that the next session does not restore the subscription, even if the server is down
				u.sharedState.removeSubscriber(rawjson.FieldString(r.Params, "uri"), r.Caller)
			}
		}()
	}
	cfg := u.config()
	if !cfg.Enabled {
		return nil, tool.ServerDisabledError(u.name)
	}
	if tool.CallerFrom(ctx).ID != r.Caller { // its permissions are unknown, so it must not sign in to a shared server
		ctx = tool.WithCaller(ctx, tool.Caller{ID: r.Caller, Tools: []string{}})
	}
	release, err := u.slot(ctx, r.Exchange.Queued)
	if err != nil {
		return nil, err
	}
	defer release()
	c, err := u.ready(ctx, r)
	if err != nil {
		return nil, u.withSignIn(ctx, cfg, err)
	}
	defer c.leave()
	u.inFlight.Add(1)
	defer u.inFlight.Add(-1)
	if cfg.remote() {
		if h := forwarded(ctx, cfg, r.Params); h != nil {
			ctx = mcpclient.WithHeader(ctx, h)
		}
	}
	u.recordCaller(r.Caller)
	result, err = u.exchange(ctx, c, r)
	if err != nil {
		if !c.shared && connectionSuspect(err) {
			signal(c.suspect)
		}
		return nil, u.withSignIn(ctx, cfg, u.callError(ctx, c, err))
	}
	return result, nil
}

// forwarded returns the headers about the caller for a remote server: its
// address if allowed, and the trace context of the call. Nil means none.
func forwarded(ctx context.Context, cfg Config, params json.RawMessage) http.Header {
	var h http.Header
	set := func(name, value string) {
		if h == nil {
			h = http.Header{}
		}
		h.Set(name, value)
	}
	if cfg.ForwardClientIP {
		if ip, ok := ctx.Value(clientIPKey{}).(string); ok && ip != "" {
			h = http.Header{"X-Forwarded-For": {ip}}
		}
	}
	if bytes.Contains(params, []byte(`"`+telemetry.TraceparentHeader+`"`)) {
		meta := rawjson.Field(params, "_meta")
		for _, name := range []string{telemetry.TraceparentHeader, telemetry.TracestateHeader} {
			if value := rawjson.FieldString(meta, name); value != "" && len(value) <= maxTraceHeader && !strings.ContainsFunc(value, unprintable) {
				set(name, value)
			}
		}
	}
	return h
}

// maxTraceHeader bounds the length of a forwarded trace header, which the
// caller chooses.
const maxTraceHeader = 2048

func unprintable(r rune) bool { return r < ' ' || r > '~' }

// withSignIn replaces the error of a call that requires consent by one with the
// URL at which this caller can sign in. It returns other errors unchanged.
func (u *upstream) withSignIn(ctx context.Context, cfg Config, err error) error {
	a := u.s.opts.Authorizer
	if a == nil || !needsSignIn(cfg, err) || u.header(cfg).Get("Authorization") != "" {
		return err
	}
	e := *tool.AsError(a.SignIn(ctx, u.name))
	e.Msg = fmt.Sprintf("%s: %s", u.name, e.Msg)
	if errors.Is(err, tool.ErrDown) {
		e.Err = tool.ErrDown
	}
	return &e
}

// needsSignIn reports whether an error requires a person's consent.
func needsSignIn(cfg Config, err error) bool {
	if answered, ok := errors.AsType[*mcp.Error](err); ok && cfg.OpenAPI != "" { // the server runs in this process, so the code is a tool.Kind
		return rawjson.FieldString(answered.Data, "code") == string(tool.UpstreamAuthRequired)
	}
	return cfg.remote() && tool.KindOf(err) == tool.UpstreamAuthRequired
}

// connectionSuspect reports whether the error of a call may concern the whole
// connection, so that it has to be checked.
func connectionSuspect(err error) bool {
	if _, answered := errors.AsType[*mcp.Error](err); answered {
		return false
	}
	switch tool.KindOf(err) {
	case tool.UpstreamFailed, tool.UpstreamAuthRequired:
		return true
	}
	return false
}

// slot waits for a free slot under maxConcurrent. It calls queued, which may be
// nil, if it has to wait.
func (u *upstream) slot(ctx context.Context, queued func(bool)) (release func(), err error) {
	u.mu.Lock()
	slots, limit := u.slots, u.cfg.QueueTimeoutMs.Duration()
	if slots == nil {
		u.mu.Unlock()
		return func() {}, nil
	}
	select {
	case slots <- struct{}{}:
		u.mu.Unlock()
		return func() { <-slots }, nil
	default:
	}
	if u.waiting >= maxWaiting {
		u.mu.Unlock()
		return nil, &tool.Error{Kind: tool.RateLimited, Msg: fmt.Sprintf("too many calls are queued for %s, which accepts %d at a time", u.name, cap(slots)), RetryAfter: time.Second}
	}
	u.waiting++
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		u.waiting--
		u.mu.Unlock()
	}()
	if queued != nil {
		queued(true)
		defer queued(false)
	}
	var over <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-over:
		return nil, &tool.Error{
			Kind: tool.RateLimited, RetryAfter: time.Second,
			Msg: fmt.Sprintf("%s accepts %d calls at a time, and this call waited %s in the queue (queueTimeoutMs); it was not sent. Try again, or raise maxConcurrent or queueTimeoutMs", u.name, cap(slots), limit),
		}
	case <-ctx.Done():
		return nil, waitError(ctx, fmt.Sprintf("%s accepts %d calls at a time, and no slot became free for this call in time", u.name, cap(slots)))
	}
}

// waitError returns the error of a call whose context ended while it waited.
func waitError(ctx context.Context, msg string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &tool.Error{Kind: tool.Timeout, Msg: msg, Err: ctx.Err()}
	}
	return &tool.Error{Kind: tool.Canceled, Msg: "the call was cancelled", Err: ctx.Err()}
}

// connection returns the shared connection; the caller must call leave on it.
// It waits for the first connection, and briefly for a reconnect.
func (u *upstream) connection(ctx context.Context) (*conn, error) {
	var giveUp <-chan time.Time
	begun := false // has waited for the first connection
	asked := -1    // downCount when another attempt was requested
	for {
		u.mu.Lock()
		if u.conn != nil && u.conn.client.Err() == nil {
			c := u.conn
			c.enter()
			u.mu.Unlock()
			return c, nil
		}
		if u.owner != "" { // became known while the call waited
			u.mu.Unlock()
			return nil, movedError(u.name)
		}
		now := time.Now()
		var stopping <-chan struct{}
		changed, first, startBy := u.changed, u.first, u.startBy
		started, downCount, since, next, why := u.attemptStarted, u.downCount, u.since, u.nextTry, u.down
		u.mu.Unlock()
		switch {
		case first:
			if !now.Before(startBy) {
				return nil, u.startingError(startBy)
			}
			giveUp = time.After(startBy.Sub(now))
			begun, stopping = true, u.s.stopping.Done()
		case why == nil: // just lost: the reason is set with the next change
			if giveUp == nil {
				giveUp = time.After(retryWait)
			}
		case begun:
			return nil, unavailable(u.name, since, next, why)
		case why.kind() == tool.UpstreamAuthRequired:
			u.retryNow() // the user may have signed in
			return nil, unavailable(u.name, since, next, why)
		case asked < 0:
			asked = downCount
			if !started.IsZero() && now.Sub(started) > retryWait {
				return nil, unavailable(u.name, since, next, why)
			}
			u.retryNow()
			giveUp = time.After(retryWait)
		case downCount > asked: // the requested attempt failed
			return nil, unavailable(u.name, since, next, why)
		}
		select {
		case <-changed:
		case <-giveUp:
			if first {
				return nil, u.startingError(startBy)
			}
			if why == nil {
				why = &failure{Kind: tool.UpstreamFailed, Msg: "its connection was lost"}
			}
			return nil, unavailable(u.name, since, next, why)
		case <-stopping:
			return nil, &tool.Error{
				Kind: tool.Unavailable, RetryAfter: time.Second, Err: downError{tool.ErrStopping},
				Msg: fmt.Sprintf("the gateway is stopping, and %s had not started; the call was not sent. Call it again when the gateway is back", u.name),
			}
		case <-u.gone:
			return nil, &tool.Error{Kind: tool.Unavailable, Msg: fmt.Sprintf("%s is being stopped", u.name), Err: tool.ErrDown}
		case <-ctx.Done():
			return nil, waitError(ctx, fmt.Sprintf("%s did not become ready in time", u.name))
		}
	}
}

// startingError returns the error of a call that waited for the first connection
// until its timeout.
func (u *upstream) startingError(startBy time.Time) error {
	u.mu.Lock()
	cfg := u.cfg
	d, installing := u.installing()
	u.mu.Unlock()
	if installing {
		return &tool.Error{
			Kind: tool.UpstreamFailed, RetryAfter: 5 * time.Second, Err: tool.ErrDown,
			Msg: fmt.Sprintf("%s is %s; try again when it is done", u.name, stillInstalling(d)),
		}
	}
	return &tool.Error{
		Kind: tool.UpstreamFailed, RetryAfter: time.Second, Err: tool.ErrDown,
		Msg: fmt.Sprintf("%s is still starting, after %s; try again, or raise its startTimeoutMs", u.name,
			(time.Since(startBy) + cfg.StartTimeoutMs.Duration()).Round(100*time.Millisecond)),
	}
}

// awaitFirst waits until the first attempt to connect has succeeded or failed.
// It returns false if the start timeout expires or ctx is done before that, or
// if StopWaiting was called.
func (u *upstream) awaitFirst(ctx context.Context) bool {
	for {
		u.mu.Lock()
		changed, first, startBy := u.changed, u.first, u.startBy
		u.mu.Unlock()
		if !first {
			return true
		}
		left := time.Until(startBy)
		if left <= 0 {
			return false
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-u.gone:
			timer.Stop()
			return true
		case <-u.s.stopping.Done():
			timer.Stop()
			return false
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}
