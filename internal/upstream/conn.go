package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/child"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// conn is one connection to an upstream.
type conn struct {
	client      *mcpclient.Client
	made        atomic.Bool    // client is set; callbacks may come before
	caller      string         // whose session it is; "" for the one that callers share
	login       string         // the generation of the caller's own login; "" where callers have none
	sharedState *sharedState   // of callers
	process     *child.Process // nil unless the upstream is a program
	shared      bool           // calls share one stream, which fails as a whole
	beside      bool           // an additional connection shared by callers; its tools are not listed

	followers atomic.Int64 // callers that follow tasks on it
	evicted   atomic.Bool  // closed to make room for another session

	oneKind atomic.Bool // an additional connection of another kind could not be made

	calls   sync.WaitGroup // in flight
	busy    atomic.Int64   // how many
	used    atomic.Int64   // unix nanoseconds of the end of the last call
	refresh chan struct{}  // the lists may have changed
	suspect chan struct{}  // a call failed in a way that may concern all

	listing      sync.Mutex        // held while the tools of one caller are listed
	toolsChanged atomic.Bool       // the server sent list_changed since the tools were listed
	definitions  [sha256.Size]byte // digest of the last listing; used only by the goroutine that lists

	schemas atomic.Pointer[map[string]json.RawMessage] // of the tools, by name

	stray, oversized atomic.Int64
	lastStray        atomic.Pointer[string]
}

func newConn() *conn {
	c := &conn{sharedState: newSharedState(), refresh: make(chan struct{}, 1), suspect: make(chan struct{}, 1)}
	c.used.Store(time.Now().UnixNano())
	return c
}

// signal puts a token into a channel that has room for one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// dial connects to the server. If the server has to be started twice, the start
// timeout applies to each start.
func (u *upstream) dial(ctx context.Context, cfg Config, k connKind) (*conn, error) {
	start := func(protocol string) (*conn, error) {
		ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeoutMs.Duration())
		defer cancel()
		return u.connect(ctx, cfg, k, protocol)
	}
	if k.caller == "" {
		k.capabilities.Roots = false // no caller could answer a request at the server's start
	}
	if k.handshake {
		return start(mcp.Version20251125)
	}
	protocol := u.lastProtocol()
	c, err := start(protocol)
	if errors.Is(err, mcpclient.ErrHandshakeEra) && protocol == "" && ctx.Err() == nil {
		c, err = start(mcp.Version20251125)
	}
	return c, err
}

func (u *upstream) connect(ctx context.Context, cfg Config, k connKind, protocol string) (*conn, error) {
	c := newConn()
	c.caller, c.login, c.beside = k.caller, k.login, k.beside
	if k.sharedState != nil {
		c.sharedState = k.sharedState
	}
	log, begun := u.s.log.With("server", u.name), time.Now()
	log.DebugContext(ctx, "connecting", "transport", string(cfg.transport()), "protocol", protocol)
	transport, err := u.transport(ctx, cfg, c)
	if err != nil {
		return nil, err
	}
	c.client, err = mcpclient.Connect(ctx, transport, mcpclient.Options{
		Name: u.s.opts.Name, Title: u.s.opts.Name, Version: u.s.opts.Version,
		Protocol: protocol, Pin: k.handshake, Capabilities: k.capabilities,
		OnNotification:    func(method string, params json.RawMessage) { u.notified(c, method, params) },
		OneAtATime:        u.oneAtATime.Load(),
		OnOneAtATime:      func() { u.oneAtATime.Store(true) },
		OnSessionReplaced: func() { signal(c.refresh); u.restore(c) },
		InputSchema:       c.schema,
		Log:               log, Redact: u.s.opts.Redact, DiscoverTimeout: u.s.opts.DiscoverTimeout,
	})
	if err != nil {
		if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.Join(context.DeadlineExceeded, err)
		}
		failed := &handshakeError{err: err}
		if c.process != nil {
			failed.conn = c
			u.mu.Lock()
			u.last = c // its stderr may contain the reason
			u.mu.Unlock()
		}
		log.DebugContext(ctx, "connection failed", "took", time.Since(begun), "err", err)
		return nil, failed
	}
	c.made.Store(true)
	log.DebugContext(ctx, "connection made", "protocol", c.client.Info().Protocol, "took", time.Since(begun))
	return c, nil
}

// transport returns the transport to the server.
func (u *upstream) transport(ctx context.Context, cfg Config, c *conn) (mcpclient.Transport, error) {
	if len(cfg.Unset) > 0 {
		return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: unsetVariables(cfg.Unset)}
	}
	switch t := cfg.transport(); t {
	case Stdio:
		c.shared = true
		return u.startChild(cfg, c)
	case InProcess:
		c.shared = true
		dial := u.s.opts.InProcess[cfg.Name]
		if dial == nil {
			return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "there is no server of this name inside the program"}
		}
		return dial(ctx)
	case OpenAPI:
		c.shared = true
		if u.s.opts.OpenAPI == nil {
			return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "OpenAPI documents are not supported here"}
		}
		return u.s.opts.OpenAPI(ctx, cfg)
	default:
		o := mcpclient.HTTPOptions{
			URL: cfg.URL, Header: u.header(cfg), RoundTripper: u.s.opts.RoundTripper, StreamableOnly: t == HTTP,
		}
		if a := u.s.opts.Authorizer; a != nil && o.Header.Get("Authorization") == "" {
			o.Authorize = func(ctx context.Context, r *http.Request, refused *mcpclient.HTTPError) error {
				return a.Authorize(ctx, cfg.LoginOf(c.caller), r, refused)
			}
		}
		if t == SSE {
			c.shared = true
			return mcpclient.NewSSE(o), nil
		}
		return mcpclient.NewHTTP(o), nil
	}
}

// header returns the configured headers and the static token.
func (u *upstream) header(cfg Config) http.Header {
	h := make(http.Header, len(cfg.Headers)+2)
	h.Set("User-Agent", userAgent(u.s.opts.Name, u.s.opts.Version))
	if cfg.AuthorizationToken != "" {
		h.Set("Authorization", "Bearer "+cfg.AuthorizationToken.Reveal())
	}
	for name, value := range cfg.Headers {
		h.Set(name, value.Reveal())
	}
	return h
}

// userAgent names this program to remote servers.
func userAgent(name, version string) string {
	if name == "" {
		name = "junctor"
	}
	if version == "" {
		return name
	}
	return name + "/" + version
}

// startChild starts the upstream's program.
func (u *upstream) startChild(cfg Config, c *conn) (mcpclient.Transport, error) {
	extra := make(map[string]string, len(cfg.Env))
	for name, value := range cfg.Env {
		extra[name] = value.Reveal()
	}
	p, err := u.s.launcher.Start(child.Spec{
		Name: cfg.Name, Command: cfg.Command, Args: cfg.Args, Dir: cfg.Cwd,
		Env:      child.Environ(u.s.opts.Environ, cfg.InheritEnv, extra),
		OnStderr: u.logStderr,
	})
	if err != nil {
		return nil, err
	}
	c.process = p
	if reason := p.Visible(); reason != "" {
		u.s.log.Debug("the data folder is visible to the server's program", "server", u.name, "reason", reason)
	}
	return mcpclient.OverLink(mcp.NewStream(p, p, mcp.StreamOptions{
		OnDrop:    c.dropped,
		EndFloods: true,
		Close: func() error {
			go p.Stop(context.Background()) // callers that need it wait for the process
			return nil
		},
	})), nil
}

// logStderr writes a line of the program's stderr to the log.
func (u *upstream) logStderr(line string) {
	u.s.log.Debug("stderr", "server", u.name, "line", line)
}

// dropped counts output on stdout that is not a message.
func (c *conn) dropped(d mcp.DroppedInput) {
	if d.TooLarge {
		c.oversized.Add(1)
		return
	}
	c.stray.Add(1)
	preview := tool.Shorten(d.Preview, 200)
	c.lastStray.Store(&preview)
}

// strayHint returns a note about output on stdout that is not a message.
func (c *conn) strayHint() string {
	n := c.stray.Load()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(". It printed output to stdout that is not an MCP message (lines: %d): check that the command starts an MCP server that speaks stdio", n)
}

// exited returns how the program exited, or nil if it is running or there is
// none. Because a program closes its pipes some time before it exits, exited
// waits for it, until ctx is done and no longer than wait.
func (c *conn) exited(ctx context.Context, wait time.Duration) error {
	if c.process == nil {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.process.Done():
	case <-timer.C:
	case <-ctx.Done():
	}
	return c.process.Err()
}

// close closes the connection and waits until its program has exited.
func (c *conn) close() {
	if c.client != nil {
		_ = c.client.Close() // no caller is left to handle the error
	}
	if c.process != nil {
		<-c.process.Done()
	}
}

// ended returns why a connection was lost.
func (c *conn) ended() error {
	err := c.client.Err()
	if c.process != nil && isConnectionClosed(err) {
		if exit := c.exited(context.Background(), exitWait); exit != nil {
			return exit
		}
	}
	return err
}

// schema returns the input schema of a tool, or nil if it is not known.
func (c *conn) schema(name string) json.RawMessage {
	if m := c.schemas.Load(); m != nil {
		return (*m)[name]
	}
	return nil
}

// idle returns how long no call has been in flight on the connection; 0 while
// one is.
func (c *conn) idle() time.Duration {
	if c.busy.Load() > 0 {
		return 0
	}
	return time.Since(time.Unix(0, c.used.Load()))
}

// enter and leave bracket a call. enter must be called while the connection is
// in use, holding upstream.mu, under which connections are taken out of use.
func (c *conn) enter() {
	c.calls.Add(1)
	c.busy.Add(1)
}

func (c *conn) leave() {
	c.used.Store(time.Now().UnixNano())
	c.busy.Add(-1)
	c.calls.Done()
}

// describe adds the connection's details to a status.
func (c *conn) describe(st *Status) {
	st.Stray, st.Oversized = c.stray.Load(), c.oversized.Load()
	if c.process != nil && c.process.Err() == nil {
		st.PID, st.Isolation, st.SeesData = c.process.PID(), c.process.Isolation(), c.process.Visible()
	}
}
