package upstream

import (
	"context"
	"encoding/json"
	"strconv"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// ForwardedExtensions are the extensions that every caller's requests declare:
// those that the gateway can forward for several servers at the same time.
var ForwardedExtensions = json.RawMessage(`{"` + mcp.ExtensionUI + `":{"mimeTypes":["text/html;profile=mcp-app"]},"` + mcp.ExtensionTasks + `":{}}`)

// connKind is what a connection negotiates with the server. A request that
// needs a kind other than that of the shared connection uses an additional
// connection, which is made on first use.
type connKind struct {
	caller       string // "" for a connection that callers share
	login        string // the generation of the caller's own login; "" where callers have none
	capabilities mcpclient.Capabilities
	handshake    bool   // the handshake era, although the server supports the stateless one
	beside       bool   // an additional connection shared by callers; its tools are not listed
	extendedBy   string // the caller that chose the capabilities; "" for those of the gateway

	sharedState *sharedState // of the connection that this one replaces; nil for none
}

func (k connKind) key() string {
	return strconv.FormatBool(k.handshake) + string(k.capabilities.JSON()) + k.login + "\x00" + k.caller
}

// ready returns a connection for the request. The caller must call leave on it.
func (u *upstream) ready(ctx context.Context, r tool.Request) (*conn, error) {
	cfg := u.config()
	if cfg.PersonalLogins() {
		return u.personalSession(ctx, r)
	}
	c, err := u.connection(ctx)
	if err != nil {
		return nil, err
	}
	handshake := wantsHandshake(r) && c.client.Info().BothEras() && !c.oneKind.Load()
	if cfg.SessionMode == PerCaller && r.Caller != "" {
		c.leave()
		k := connKind{caller: r.Caller, capabilities: commonCapabilities(u.s.opts.Capabilities, r.Exchange), handshake: handshake}
		return u.session(ctx, k)
	}
	k, ok := u.extraConnKind(c, cfg, r, handshake)
	if !ok {
		return c, nil
	}
	own, err := u.session(ctx, k)
	if err == nil {
		c.leave()
		return own, nil
	}
	if ctx.Err() != nil {
		c.leave()
		return nil, err
	}
	if tool.KindOf(err) != tool.RateLimited {
		c.oneKind.Store(true)
	}
	u.s.log.WarnContext(ctx, "cannot connect in the caller's protocol era; using the shared connection", "server", u.name, "err", err)
	return c, nil
}

// extraConnKind returns the kind of connection that the request needs, and
// whether that differs from the shared one. It never does for the server of an
// OpenAPI document, which behaves the same in both eras, and for a singleton,
// which has one process.
func (u *upstream) extraConnKind(c *conn, cfg Config, r tool.Request, handshake bool) (connKind, bool) {
	if cfg.transport() == OpenAPI || cfg.Singleton || c.oneKind.Load() || r.Caller == "" {
		return connKind{}, false
	}
	k := connKind{capabilities: u.s.opts.Capabilities, handshake: handshake, beside: true}
	if r.Exchange.Transparent && (handshake || !c.client.Info().Stateless()) && extends(r.Exchange.Capabilities) {
		// In the handshake era extensions are negotiated once per connection.
		k.capabilities, k.extendedBy = k.capabilities.Extended(r.Exchange.Capabilities), r.Caller
		return k, true
	}
	return k, handshake
}

// extends reports whether a caller declares extensions or experimental
// capabilities.
func extends(capabilities json.RawMessage) bool {
	for _, key := range []string{"extensions", "experimental"} {
		for range rawjson.Members(rawjson.Field(capabilities, key)) {
			return true
		}
	}
	return false
}

// wantsHandshake reports whether the request is better served in the handshake
// era: its caller uses that era, and either sees only this server or can be
// asked for input.
func wantsHandshake(r tool.Request) bool {
	ex := r.Exchange
	return ex.Protocol != "" && !mcp.Stateless(ex.Protocol) && (ex.Transparent || ex.Ask != nil && mcp.MayNeedInput(r.Method))
}

// Describe returns the server information for a caller that sees only this
// server, and false if the server is not connected.
func (s *Supervisor) Describe(ctx context.Context, server, caller string, ex tool.Exchange) (mcpclient.ServerInfo, bool) {
	info, ok := s.Info(server, caller)
	u := s.find(server)
	if u == nil || u.elsewhere() != "" {
		return info, ok
	}
	if cfg := u.config(); !cfg.PersonalLogins() && (!ok || cfg.SessionMode == PerCaller) {
		return info, ok
	}
	c, err := u.ready(ctx, tool.Request{Method: mcp.MethodInitialize, Caller: caller, Exchange: ex})
	if err != nil {
		return info, ok
	}
	defer c.leave()
	return c.client.Describe(ctx, ex), true
}
