package doctor

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"junctor/internal/child"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/openapi"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Dial configures how to connect to a server.
type Dial struct {
	Launcher     *child.Launcher
	Environ      []string // from which a program inherits
	RoundTripper http.RoundTripper

	exitTimeout time.Duration // for tests; zero means the constant

	// Authorize adds credentials to requests to a remote server; may be nil.
	Authorize func(ctx context.Context, r *http.Request, refused *mcpclient.HTTPError) error
}

// exitTimeout is how long a program may take to exit after its stdin is closed,
// before the launcher terminates it.
const exitTimeout = 2 * time.Second

// connection is one connection to the server under test.
type connection struct {
	client      *mcpclient.Client
	process     *child.Process // nil for a remote server
	exitTimeout time.Duration

	mu    sync.Mutex
	drops int
	last  string
}

// connect makes a new connection with the given version of the protocol, or the
// best one if version is empty.
func (r *TestReport) connect(ctx context.Context, o TestOptions, version string) (*connection, error) {
	c, err := r.start(ctx, o, version)
	if errors.Is(err, mcpclient.ErrHandshakeEra) && version == "" {
		c, err = r.start(ctx, o, mcp.Version20251125)
	}
	return c, err
}

// start starts the server, or connects to it, within its start timeout.
func (r *TestReport) start(ctx context.Context, o TestOptions, version string) (*connection, error) {
	timeout := o.Timeout
	if start := o.Server.StartLimit(); start > upstream.DefaultConfig().StartTimeoutMs.Duration() { // a known slow start
		timeout = max(timeout, start)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := o.Dial.open(ctx, o, version)
	if err != nil && c != nil && c.process != nil {
		select {
		case <-c.process.Done():
		case <-ctx.Done():
		case <-time.After(c.exitTimeout): // it closed its stdout and may be about to exit
		}
		c.process.Kill()
		<-c.process.Done()
		r.lastStderr = c.stderr()
		if exit, ok := errors.AsType[*child.ExitError](c.process.Err()); ok && exit.Signal == "" && exit.Code >= 0 && ctx.Err() == nil {
			err = errors.Join(err, errors.New("its program "+exit.Error()))
		}
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.Join(errNoResponse, err)
		}
		return nil, oneError(err)
	}
	return c, nil
}

var errNoResponse = errors.New("no answer in time")

func (d Dial) open(ctx context.Context, o TestOptions, version string) (*connection, error) {
	c := &connection{exitTimeout: cmp.Or(d.exitTimeout, exitTimeout)}
	var transport mcpclient.Transport
	if cfg := o.Server; cfg.Command != "" {
		p, err := d.Launcher.Start(child.Spec{Name: cfg.Name, Command: cfg.Command, Args: cfg.Args, Dir: cfg.Cwd, Env: environ(d.Environ, cfg)})
		if err != nil {
			return nil, err
		}
		c.process = p
		transport = mcpclient.OverLink(mcp.NewStream(p, p, mcp.StreamOptions{OnDrop: c.dropped, Close: func() error {
			go p.Stop(context.Background()) // connection.close waits for the exit
			return nil
		}}))
	} else if cfg.OpenAPI != "" {
		t, err := openapi.Dialer{UserAgent: "junctor/" + o.Version, Proxy: http.ProxyFromEnvironment}.Dial(ctx, cfg)
		if err != nil {
			return nil, err
		}
		transport = t
	} else {
		h := mcpclient.HTTPOptions{URL: cfg.URL, Header: http.Header{}, RoundTripper: d.RoundTripper, StreamableOnly: cfg.Transport == upstream.HTTP}
		if cfg.AuthorizationToken != "" {
			h.Header.Set("Authorization", "Bearer "+cfg.AuthorizationToken.Reveal())
		}
		for name, v := range cfg.Headers {
			h.Header.Set(name, v.Reveal())
		}
		if h.Header.Get("Authorization") == "" {
			h.Authorize = d.Authorize
		}
		if cfg.Transport == upstream.SSE {
			transport = mcpclient.NewSSE(h)
		} else {
			transport = mcpclient.NewHTTP(h)
		}
	}
	options := mcpclient.Options{Name: "junctor-test", Version: o.Version, Protocol: version, Pin: version != "", RequestTimeout: o.Timeout}
	if options.Pin {
		options.DiscoverTimeout = discoverTimeout
	}
	client, err := mcpclient.Connect(ctx, transport, options)
	c.client = client
	return c, err
}

// discoverTimeout is the timeout of server/discover if one version is
// requested. It is longer than the default, after which a client falls back to
// initialize: here there is no fallback.
const discoverTimeout = 10 * time.Second

// dropped counts lines on a program's stdout that are not messages.
func (c *connection) dropped(d mcp.DroppedInput) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	c.last = tool.Shorten(d.Preview, 200)
}

func (c *connection) stray() (int, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drops, c.last
}

func (c *connection) isProgram() bool { return c.process != nil }

func (c *connection) stderr() []string {
	if c.process == nil {
		return nil
	}
	return c.process.Stderr()
}

// close closes the connection and returns how long the program took to exit.
func (c *connection) close() time.Duration {
	begun := time.Now()
	_ = c.client.Close() // the test is done, the error does not matter
	if c.process != nil {
		<-c.process.Done()
	}
	return time.Since(begun)
}

// noOtherVersion reports whether trying another version is pointless: the program
// could not be started, or nothing listens at the address.
func noOtherVersion(err error) bool {
	_, noProgram := errors.AsType[*child.StartError](err)
	dial, ok := errors.AsType[*net.OpError](err)
	return noProgram || ok && dial.Op == "dial"
}

// oneError wraps err in an error whose message is a single line.
func oneError(err error) error { return lineError{err} }

type lineError struct{ error }

func (e lineError) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e lineError) Unwrap() error { return e.error }
