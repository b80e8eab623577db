package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// ErrHandshakeEra means that a server closed the connection on server/discover, as
// some servers of the handshake era do. Connecting again with
// Options.Protocol set to [mcp.Version20251125] may succeed.
var ErrHandshakeEra = errors.New("the server closed the connection on server/discover")

// oldest is the version before the first public one. Some servers still answer
// with it, and its messages are the same.
const oldest = "2024-10-07"

var handshakeVersions = []string{oldest, mcp.Version20241105, mcp.Version20250326, mcp.Version20250618, mcp.Version20251125}

// negotiate determines the server's era and version.
func (c *Client) negotiate(ctx context.Context) error {
	hint := c.opts.Protocol
	if hint == "" || mcp.Stateless(hint) {
		return c.discoverFirst(ctx)
	}
	err := c.handshake(ctx)
	if err == nil || c.opts.Pin || !retryEra(ctx, err) || c.Err() != nil {
		return err
	}
	if found := c.discover(ctx); found.stateless {
		return c.accept(found)
	}
	return err // the hint may be wrong, but the server does not support the stateless era either
}

// discovery is the outcome of server/discover. stateless reports whether the
// server belongs to the stateless era; err is then the outcome of the
// negotiation. Any other err ends the attempt.
type discovery struct {
	stateless bool
	info      ServerInfo
	err       error
}

func (c *Client) accept(d discovery) error {
	if d.err == nil {
		c.setServerInfo(d.info)
	}
	return d.err
}

// setServerInfo applies the negotiated protocol and capabilities.
func (c *Client) setServerInfo(info ServerInfo) {
	c.info.Store(&info)
	c.stateless.Store(info.Stateless())
}

// discoverFirst sends server/discover and falls back to initialize. A server
// that does not answer in time may be of the handshake era, or slow to start,
// so initialize is sent while server/discover is still pending; over HTTP
// server/discover is cancelled first. The first useful response decides, or
// that of server/discover if both have arrived. A client that is pinned to a
// stateless version does not send initialize, which cannot negotiate it.
func (c *Client) discoverFirst(ctx context.Context) error {
	probe, stopProbe := context.WithCancel(ctx)
	defer stopProbe()
	probed := make(chan discovery, 1)
	go func() { probed <- c.discover(probe) }()
	pinned := c.opts.Pin && c.opts.Protocol != ""
	timeout := time.NewTicker(c.opts.DiscoverTimeout)
	defer timeout.Stop()
	for silent, authorizing := false, false; !silent; {
		select {
		case d := <-probed:
			switch {
			case d.stateless || d.err != nil:
				return c.accept(d)
			case pinned:
				return &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server does not speak protocol version " + c.opts.Protocol}
			}
			return c.handshake(ctx)
		case <-timeout.C:
			// The time of a login does not count: the timeout starts again
			// after it.
			before := authorizing
			authorizing = c.wire.authorizing()
			silent = !before && !authorizing
		}
	}
	if pinned {
		return &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("the server did not answer server/discover within %v, so protocol version %s could not be negotiated", c.opts.DiscoverTimeout, c.opts.Protocol)}
	}
	if c.inline { // the handshake may change the transport, so the probe must have ended
		stopProbe()
		if d := <-probed; d.stateless {
			return c.accept(d)
		}
		err := c.handshake(ctx)
		if err != nil && retryEra(ctx, err) {
			if d := c.discover(ctx); d.stateless { // it was slow
				return c.accept(d)
			}
		}
		return err
	}
	shake, stopShake := context.WithCancel(ctx)
	defer stopShake()
	shaken := make(chan error, 1)
	go func() { shaken <- c.handshake(shake) }()
	select {
	case err := <-shaken:
		if err == nil || !retryEra(ctx, err) {
			stopProbe()
			d := <-probed
			if d.stateless && d.err == nil && c.Err() == nil { // both were answered
				return c.accept(d)
			}
			return handshakeError(err, d)
		}
		if d := <-probed; d.stateless {
			return c.accept(d)
		}
		return err
	case d := <-probed:
		if !d.stateless || d.err != nil {
			return handshakeError(<-shaken, d) // initialize decides
		}
		stopShake()
		<-shaken // it must not overwrite the result
		return c.accept(d)
	}
}

// handshakeError returns the error of a handshake that ran while
// server/discover was pending. If the server refused neither request but closed
// the connection, it wraps [ErrHandshakeEra].
func handshakeError(err error, d discovery) error {
	if _, refused := errors.AsType[*mcp.Error](err); err != nil && !refused && errors.Is(d.err, ErrHandshakeEra) {
		return d.err
	}
	return err
}

// handshake sends initialize, over the legacy transport if necessary.
func (c *Client) handshake(ctx context.Context) error {
	err := c.initialize(ctx)
	if err != nil && c.fallBack(ctx, err) {
		return c.initialize(ctx)
	}
	return err
}

// retryEra reports whether a failed handshake indicates another era: a refusal
// does, an unreachable server or missing credentials do not.
func retryEra(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if _, ok := errors.AsType[*mcp.Error](err); ok {
		return true
	}
	h, ok := errors.AsType[*HTTPError](err)
	return ok && h.Status != http.StatusUnauthorized && h.Status != http.StatusForbidden
}

// discover sends server/discover.
func (c *Client) discover(ctx context.Context) discovery {
	version := mcp.Version20260728
	for range 2 {
		result, err := c.request(ctx, tool.Request{Method: mcp.MethodDiscover}, c.addMeta(nil, version, "", nil))
		if err == nil {
			info, ok := discovered(result, version)
			return discovery{stateless: ok, info: info}
		}
		if refused, ok := errors.AsType[*mcp.Error](err); ok {
			next, stateless := supported(refused)
			switch {
			case !stateless || next != "" && !mcp.Stateless(next):
				return discovery{}
			case next == "":
				return discovery{stateless: true, err: &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server and this client have no protocol version in common", Err: err}}
			}
			version = next // even if it is the same one: the server requests it
			continue
		}
		if cause := c.Err(); cause != nil {
			return discovery{err: &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server ended the connection during the handshake", Err: fmt.Errorf("%w: %w", ErrHandshakeEra, cause)}}
		}
		if h, ok := errors.AsType[*HTTPError](err); ok && !h.Unauthorized() {
			return discovery{} // otherwise initialize decides
		}
		if d, ok := errors.AsType[*mcp.DecodeError](err); ok && !d.TooLarge {
			return discovery{} // not an MCP server, or one that answers unknown methods incorrectly
		}
		return discovery{err: err}
	}
	return discovery{}
}

// supported returns the best version listed in an error of the stateless era.
// stateless reports whether it is such an error.
func supported(e *mcp.Error) (best string, stateless bool) {
	switch e.Code {
	case mcp.CodeUnsupportedProtocol:
	case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability:
		return "", true
	default:
		return "", false
	}
	var versions []string
	for v := range rawjson.Elements(rawjson.Field(e.Data, "supported")) {
		s, _ := rawjson.Unquote(v)
		versions = append(versions, s)
	}
	if slices.Contains(versions, mcp.Version20260728) {
		return mcp.Version20260728, true
	}
	for _, v := range slices.Backward(handshakeVersions) {
		if slices.Contains(versions, v) {
			return v, true
		}
	}
	return "", true
}

// discovered parses the result of server/discover. ok reports whether the
// result lists version.
func discovered(result json.RawMessage, version string) (info ServerInfo, ok bool) {
	for v := range rawjson.Elements(rawjson.Field(result, "supportedVersions")) {
		if s, _ := rawjson.Unquote(v); s == version {
			ok = true
		}
	}
	if !ok {
		return ServerInfo{}, false
	}
	info = readInfo(result, rawjson.Field(result, "_meta", mcp.MetaServerInfo))
	info.Protocol = version
	return info, true
}

func readInfo(result, server json.RawMessage) ServerInfo {
	return ServerInfo{
		Name:         tool.Shorten(rawjson.FieldString(server, "name"), maxLogged),
		Title:        tool.Shorten(rawjson.FieldString(server, "title"), maxLogged),
		Version:      tool.Shorten(rawjson.FieldString(server, "version"), maxLogged),
		Instructions: rawjson.FieldString(result, "instructions"),
		Capabilities: rawjson.Field(result, "capabilities"),
		Raw:          result,
	}
}

// initialize performs the handshake.
func (c *Client) initialize(ctx context.Context) error {
	version := mcp.Version20251125
	if slices.Contains(handshakeVersions[1:], c.opts.Protocol) && c.opts.Pin {
		version = c.opts.Protocol
	}
	var params json.RawMessage
	params = rawjson.SetField(params, c.self, "clientInfo")
	params = rawjson.SetField(params, c.opts.Capabilities.JSON(), "capabilities")
	params = rawjson.SetField(params, rawjson.AppendQuoted(nil, version), "protocolVersion")
	result, err := c.request(ctx, tool.Request{Method: mcp.MethodInitialize}, params)
	if err != nil {
		return err
	}
	info := readInfo(result, rawjson.Field(result, "serverInfo"))
	info.Protocol = rawjson.FieldString(result, "protocolVersion")
	if !slices.Contains(handshakeVersions, info.Protocol) {
		if !rawjson.IsObject(result) || info.Protocol == "" {
			return &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server did not answer initialize as MCP requires; check that it is an MCP server"}
		}
		return &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("the server requires protocol version %q; this client supports %s",
			printable(info.Protocol), strings.Join(handshakeVersions[1:], ", "))}
	}
	c.setServerInfo(info)
	if err := c.wire.send(ctx, &mcp.Message{Method: mcp.MethodInitialized}); err != nil {
		return c.callError(ctx, err)
	}
	return nil
}

// protocol returns the negotiated version, which requests carry.
func (c *Client) protocol() string { return c.info.Load().Protocol }
