package openapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// Dialer connects upstreams to in-process servers for their OpenAPI documents.
type Dialer struct {
	CacheDir  string // for copies of fetched documents; empty for no copies
	UserAgent string
	Proxy     func(*http.Request) (*url.URL, error)
	Log       *slog.Logger

	// Authorize sets the token of an upstream's login on a request; see
	// [upstream.Authorizer]. It is used if the entry configures a client
	// (oauth).
	Authorize func(ctx context.Context, server string, r *http.Request, refused *mcpclient.HTTPError) error
	Logins    *Logins // nil if there are no logins
}

func (d Dialer) logger(cfg upstream.Config) *slog.Logger {
	if d.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return d.Log.With("server", cfg.Name)
}

func (d Dialer) options(cfg upstream.Config) Options {
	o := Options{
		Document: cfg.OpenAPI, BaseURL: cfg.BaseURL, Header: header(cfg),
		Filter:      Filter{Include: cfg.Operations.Include, Exclude: cfg.Operations.Exclude},
		Credentials: reveal(cfg.Credentials),
		CacheDir:    d.CacheDir, UserAgent: d.UserAgent, Proxy: d.Proxy, Log: d.logger(cfg),
	}
	if d.Authorize != nil && cfg.OAuth != nil {
		o.Login = func(ctx context.Context, r *http.Request, refused *mcpclient.HTTPError) error {
			return d.Authorize(ctx, cfg.Name, r, refused)
		}
	}
	return o
}

// Dial reads the document of an upstream and returns a connection to an
// in-process server, which stops when the connection closes. ctx only bounds
// reading the document.
func (d Dialer) Dial(ctx context.Context, cfg upstream.Config) (mcpclient.Transport, error) {
	handler, err := NewServer(ctx, d.options(cfg))
	if err != nil {
		return nil, err
	}
	if d.Logins != nil {
		d.Logins.put(cfg, handler.endpoints())
	}
	server := mcpserver.New(mcpserver.Options{Log: d.logger(cfg)}, handler)
	near, far := mcp.Pipe()
	// All callers share this connection and the requests do not identify them,
	// so they cannot begin a sign-in.
	life, end := context.WithCancel(context.Background())
	go handler.Watch(life, func() { server.Notify(mcp.MethodToolsChanged, nil) })
	go func() {
		defer end()
		defer server.Close()
		_ = server.ServeLink(life, far) // an error only means that the connection has ended
	}()
	return mcpclient.OverLink(near), nil
}

func header(cfg upstream.Config) http.Header {
	h := http.Header{}
	if cfg.AuthorizationToken != "" {
		h.Set("Authorization", "Bearer "+cfg.AuthorizationToken.Reveal())
	}
	for name, value := range cfg.Headers {
		h.Set(name, value.Reveal())
	}
	return h
}

func reveal(secrets map[string]telemetry.Secret) map[string]string {
	plain := make(map[string]string, len(secrets))
	for name, value := range secrets {
		plain[name] = value.Reveal()
	}
	return plain
}
