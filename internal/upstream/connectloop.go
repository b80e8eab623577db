package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"junctor/internal/setting"
	"junctor/internal/tool"
)

// connectLoop connects, monitors the connection and reconnects with backoff
// until ctx is done.
func (u *upstream) connectLoop(ctx context.Context) {
	retry := &backoff.ExponentialBackOff{InitialInterval: minRetryDelay, Multiplier: 2, RandomizationFactor: 0.5, MaxInterval: maxRetryDelay}
	retry.Reset()
	longer := setting.Millis(0) // raised start timeout, for a program that did not answer in time
	for ctx.Err() == nil {
		began := time.Now()
		cfg := u.config().withStartLimit()
		cfg.StartTimeoutMs = max(cfg.StartTimeoutMs, longer)
		c, err := u.attempt(ctx, cfg)
		if err == nil {
			longer = 0
			began = time.Now()
			err = u.monitor(ctx, c)
			u.retire(ctx, c)
		}
		if ctx.Err() != nil {
			return
		}
		if c != nil && time.Since(began) >= stableAfter {
			retry.Reset()
		}
		why := explain(cfg, err)
		if u.signedInMeanwhile(why) {
			continue
		}
		if why.kind() == tool.Timeout && !cfg.remote() {
			longer = max(cfg.StartTimeoutMs, min(2*cfg.StartTimeoutMs, setting.Millis(maxStartTimeout/time.Millisecond)))
		}
		wait := max(retry.NextBackOff(), why.RetryAfter)
		u.setDown(ctx, why, c != nil, wait)
		u.waitForRetry(ctx, wait)
	}
}

// setDown records that the upstream is down, and why.
func (u *upstream) setDown(ctx context.Context, why *failure, lost bool, wait time.Duration) {
	now := time.Now()
	u.mu.Lock()
	changed := u.down == nil || u.down.message() != why.message()
	state := Disconnected
	if why.kind() == tool.UpstreamAuthRequired {
		state = AuthRequired
	}
	if u.state != state {
		u.state, u.since = state, now
	}
	if lost {
		u.lost++
	}
	u.down, u.first, u.attemptStarted = why, false, time.Time{}
	u.downCount++
	u.lastFailure, u.failedAt = why.message(), now
	u.nextTry = now.Add(wait)
	attempts := u.attempts
	u.broadcast()
	u.mu.Unlock()
	u.publishStatus()
	log := u.s.log.DebugContext
	if changed {
		log = u.s.log.WarnContext
	}
	log(ctx, "upstream down", "server", u.name, "reason", why.message(), "err", why.Err, "attempts", attempts, "next", wait)
}

// waitForRetry waits before the next attempt. retryNow shortens the wait.
func (u *upstream) waitForRetry(ctx context.Context, wait time.Duration) {
	u.mu.Lock()
	gap := childRetryInterval
	switch {
	case u.state == AuthRequired:
		gap = authRetryInterval
	case u.cfg.remote():
		gap = remoteRetryInterval
	}
	u.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	case <-u.wake:
		u.pauseUnless(ctx, min(gap, wait))
	}
	select { // requests made meanwhile are covered by this attempt
	case <-u.wake:
	default:
	}
}

// pauseUnless waits before a requested attempt, unless the user has signed in
// meanwhile.
func (u *upstream) pauseUnless(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		u.mu.Lock()
		first, changed := u.first, u.changed
		u.mu.Unlock()
		if first { // signedIn
			return
		}
		select {
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// attempt makes a connection and lists the tools.
func (u *upstream) attempt(ctx context.Context, cfg Config) (*conn, error) {
	u.mu.Lock()
	u.attempts++
	u.attemptStarted, u.nextTry, u.signIn = time.Now(), time.Time{}, false
	u.mu.Unlock()
	// A child process must have exited before its successor starts.
	u.children.Wait()

	c, err := u.dial(ctx, cfg, connKind{capabilities: u.s.opts.Capabilities, sharedState: u.sharedState})
	if err != nil {
		if h, ok := errors.AsType[*handshakeError](err); ok && h.conn != nil {
			u.close(h.conn)
		}
		return nil, err
	}
	set, err := u.list(ctx, c, cfg)
	if err != nil {
		u.close(c)
		return nil, err
	}
	u.publishTools(set)
	u.connected(ctx, c)
	return c, nil
}

// connected makes c the shared connection, which calls can then use.
func (u *upstream) connected(ctx context.Context, c *conn) {
	info := c.client.Info()
	u.restore(c)
	u.mu.Lock()
	u.conn, u.last = c, nil
	u.state, u.since = Connected, time.Now()
	u.down, u.first, u.attempts = nil, false, 0
	u.attemptStarted = time.Time{}
	u.protocol = info.Protocol
	tools := u.tools
	u.broadcast()
	u.mu.Unlock()
	u.publishStatus()
	u.s.log.InfoContext(ctx, "upstream connected", "server", u.name, "tools", tools, "protocol", info.Protocol,
		"name", info.Name, "version", info.Version)
}

// broadcast wakes all goroutines that wait for a change. u.mu is held.
func (u *upstream) broadcast() {
	close(u.changed)
	u.changed = make(chan struct{})
	u.s.changes.Wake(topicState)
}

// publishStatus passes the status to the sink.
func (u *upstream) publishStatus() { u.s.opts.Sink.StatusChanged(u.status()) }

// retire takes the connection out of use. Calls in flight may finish unless
// they share its stream.
func (u *upstream) retire(ctx context.Context, c *conn) {
	u.mu.Lock()
	u.conn, u.last = nil, c
	u.mu.Unlock()
	if !c.shared && c.client.Err() == nil {
		u.work.Go(func() {
			done := make(chan struct{})
			go func() { defer close(done); c.calls.Wait() }()
			select {
			case <-done:
			case <-ctx.Done():
			case <-c.client.Done():
			}
			c.close()
		})
		return
	}
	u.close(c)
}

// close closes a connection in the background. The next attempt waits until it
// is closed.
func (u *upstream) close(c *conn) { u.children.Go(c.close) }
