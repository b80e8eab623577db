package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"

	"junctor/internal/auth"
	"junctor/internal/authserver"
	"junctor/internal/config"
	"junctor/internal/httperr"
	"junctor/internal/httpserver"
	"junctor/internal/mcp"
	"junctor/internal/memory"
	"junctor/internal/oauth"
	"junctor/internal/tool"
)

// Serve runs the gateway with all APIs on ln until ctx is done. Then it
// drains, and stops the upstreams last. ready is called once clients and the
// user's other programs can find the gateway; if it returns an error, Serve
// stops.
func (a *App) Serve(ctx context.Context, ln net.Listener, ready func() error) error {
	defer ln.Close()      // no effect if the server has closed it
	if ctx.Err() != nil { // stopped before it started
		return nil
	}
	gate, err := a.newGate(ctx, ln.Addr().String())
	if err != nil {
		return err
	}
	a.page.Store(new(ln.Addr().String()))
	cfg := a.config.Load()
	a.setCallback(cfg)
	server := httpserver.New(a.handler(gate), a.log)
	if cfg.TLS.Enabled() {
		if err := httpserver.UseTLS(server, cfg.TLS, a.log); err != nil {
			return err
		}
	}
	path, socket := a.freeSocket()
	if err := ready(); err != nil {
		if socket != nil {
			_ = socket.Close()
		}
		return err
	}
	// Upstreams keep running until the calls in flight have finished.
	core, stopCore := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCore()
	// Long-lived streams must not delay the shutdown.
	streams, stopStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer stopStreams()
	server.BaseContext = func(net.Listener) context.Context { return streams }

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.Run(core) })
	g.Go(func() error { return gate.Run(core) })
	g.Go(func() error { return a.watch(ctx, cfg) })
	g.Go(func() error {
		return memory.Run(ctx, func(ctx context.Context) { a.upstreams.Await(ctx) }, a.executor.InFlight)
	})
	g.Go(func() error { return a.share(ctx, path, socket) })
	g.Go(func() error {
		serve := server.Serve
		if cfg.TLS.Enabled() {
			serve = func(ln net.Listener) error { return server.ServeTLS(ln, "", "") }
		}
		if err := serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve on %s: %w", ln.Addr(), err)
		}
		return nil
	})
	g.Go(func() error {
		defer stopCore()
		<-ctx.Done()
		a.drain(server, stopStreams)
		return nil
	})
	return g.Wait()
}

// setCallback sets the redirect URI of logins to upstreams to the address at
// which browsers reach the gateway.
func (a *App) setCallback(cfg *config.Config) {
	listen := a.page.Load()
	if listen == nil {
		return // nothing is served yet
	}
	public := cfg.PublicURL
	if public == "" && cfg.Auth.JWT != nil {
		public = cfg.Auth.JWT.Audience
	}
	a.oauth.SetCallback(oauth.CallbackURL(public, cfg.TLS.Scheme(), *listen))
}

// public reports whether a request needs no caller: the page itself, liveness,
// and signing in.
func (a *App) public(r *http.Request) bool {
	switch r.URL.Path {
	case "/health", "/health/live", "/health/ready", "/api/session", "/oauth/callback", auth.OIDCStartPath, auth.OIDCCallbackPath:
		return true
	}
	// Clients read the well-known documents before they have credentials.
	return a.isPage(r) || authserver.Public(r.URL.Path) || strings.HasPrefix(r.URL.Path, "/.well-known/") && r.Method == http.MethodGet
}

// rejectedMCP reports a request that the MCP server rejected with a protocol
// error.
func rejectedMCP(r *http.Request, status int, e *mcp.Error) {
	kind := tool.InvalidRequest
	switch {
	case status == http.StatusRequestEntityTooLarge:
		kind = tool.TooLarge
	case e.Code == mcp.CodeParseError:
		kind = tool.ParseFailed
	}
	httperr.Rejected(r, status, &tool.Error{Kind: kind, Msg: e.Message})
}

// handler returns the handler of a listener with the gate.
func (a *App) handler(gate *auth.Gate) http.Handler {
	return a.closeWhenStopping(a.wrap(gate.Wrap(httpserver.WithClientIP(a.mount(gate)))))
}

// wrap adds the handlers that every request passes through, allowed or not.
func (a *App) wrap(next http.Handler) http.Handler {
	return httpserver.Wrap(a.log, httperr.WithObserver(a.rejections.Observe, next))
}
