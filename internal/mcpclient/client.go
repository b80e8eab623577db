package mcpclient

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Transport is a way to reach a server: what [OverLink], [NewHTTP] and [NewSSE]
// return.
type Transport interface {
	// open starts the connection and sets c.wire before anything can arrive.
	// Incoming messages go to c.handle.
	open(ctx context.Context, c *Client) error
}

// wire is an open connection to a server, as the Client sees it.
type wire interface {
	// do sends a request and returns its response. It delivers the messages
	// that arrive for the call before the response before it returns.
	do(ctx context.Context, cl *pendingRequest, m *mcp.Message) (mcp.Message, error)
	// send sends a notification or a response.
	send(ctx context.Context, m *mcp.Message) error
	// respond sends a response from the goroutine that reads, so it must not
	// block; it drops the response if the server does not accept any.
	respond(m *mcp.Message)
	// ready sets the negotiated protocol version.
	ready(protocol string)
	// authorizing reports whether a request waits for its credentials.
	authorizing() bool
	close() error
}

// Options configure a Client. The zero value is a client that declares no
// capabilities and has no callbacks.
type Options struct {
	// Name, Title and Version identify the client to the server.
	Name, Title, Version string

	// Protocol is the version negotiated last time, or empty if unknown. It
	// saves the probing round trip to a server of the handshake era.
	Protocol string

	// Pin makes Protocol mandatory instead of a hint: that version is
	// proposed, and the other era is not tried.
	Pin bool

	// Capabilities are declared to the server. Exchange.Ask must support them.
	Capabilities Capabilities

	// OnNotification receives the notifications that belong to no call
	// (list_changed, resources/updated, logging outside of calls), in order.
	// It must not block, and must not call the Client.
	OnNotification func(method string, params json.RawMessage)

	// OneAtATime makes calls that could cause questions run one at a time, so
	// that every question belongs to one call. If a server asks a question
	// during several calls and does not specify for which, the client does so
	// from then on and calls OnOneAtATime, which must not block.
	OneAtATime   bool
	OnOneAtATime func()

	// OnSessionReplaced is called when a lost HTTP session was replaced by a new
	// one: cached data of the server may be stale. It must not block.
	OnSessionReplaced func()

	// InputSchema returns the input schema of a tool of this server, nil if it
	// is not known. HTTP servers of the stateless era may require arguments as
	// headers too.
	InputSchema func(tool string) json.RawMessage

	// DiscoverTimeout is how long to wait for a response to server/discover
	// before initialize is tried, or before a client that is pinned to a
	// stateless version gives up; 3 s if zero.
	DiscoverTimeout time.Duration

	// RequestTimeout bounds requests whose context has no deadline; none
	// when zero.
	RequestTimeout time.Duration

	Limits mcp.Limits
	Log    *slog.Logger // nil logs nothing

	// Redact masks secrets in the messages that are logged at the level trace;
	// nil changes nothing.
	Redact func(string) string
}

// ServerInfo is the description that a server sent of itself.
type ServerInfo struct {
	Name         string
	Title        string
	Version      string
	Protocol     string // the negotiated version
	Instructions string
	Capabilities json.RawMessage // as the server declared them
	Raw          json.RawMessage // the whole result of initialize or server/discover
}

// Stateless reports whether a version of the stateless era was negotiated.
func (i ServerInfo) Stateless() bool { return mcp.Stateless(i.Protocol) }

// BothEras reports whether a server of the stateless era declares that it
// supports the handshake era too.
func (i ServerInfo) BothEras() bool {
	if !i.Stateless() {
		return false
	}
	for v := range rawjson.Elements(rawjson.Field(i.Raw, "supportedVersions")) {
		if version, _ := rawjson.Unquote(v); slices.Contains(handshakeVersions, version) {
			return true
		}
	}
	return false
}

// Client is a connection to one MCP server.
type Client struct {
	opts Options
	log  *slog.Logger
	self json.RawMessage // clientInfo
	// declared are the capabilities of requests that no caller restricts.
	declared json.RawMessage
	wire     wire
	// inline means that each call reads its own stream, on its own goroutine.
	inline bool

	info           atomic.Pointer[ServerInfo]
	stateless      atomic.Bool
	logLevel       atomic.Pointer[string] // the level set with logging/setLevel
	fetchedSchemas sync.Map               // schemas read after a call was refused for missing headers, by tool
	nextID         atomic.Int64

	warnings warnings

	mu                 sync.Mutex
	calls              map[int64]*pendingRequest
	caller             string // of the last call that could cause messages
	severalCallers     bool   // calls of several callers were made
	oneAtATime         bool   // calls that could cause questions run one at a time
	queue              []*queuedCall
	cancelledAt        map[string]time.Time // when a call of the caller was last cancelled
	serverRequests     map[mcp.ID]*serverRequest
	openServerRequests int // including those whose response is being sent; at most maxServerRequests
	listening          listener

	ctx     context.Context // cancelled when the client ends; for work that belongs to no call
	cancel  context.CancelFunc
	done    chan struct{}
	endOnce sync.Once
	err     error // set before done is closed
}

// Connect opens the transport and negotiates an era and a version as MCP
// requires: with server/discover, or else with initialize. The context bounds
// only Connect, not the connection. If Connect fails it closes the transport.
func Connect(ctx context.Context, t Transport, o Options) (*Client, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.DiscoverTimeout <= 0 {
		o.DiscoverTimeout = 3 * time.Second
	}
	o.Limits = o.Limits.WithDefaults()
	c := &Client{opts: o, log: o.Log, self: o.clientInfo(), declared: o.Capabilities.JSON(), calls: map[int64]*pendingRequest{}, oneAtATime: o.OneAtATime, serverRequests: map[mcp.ID]*serverRequest{}, done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.info.Store(&ServerInfo{})
	if err := t.open(ctx, c); err != nil {
		c.end(err)
		return nil, err
	}
	if err := c.negotiate(ctx); err != nil {
		c.end(err)
		c.wire.close()
		return nil, err
	}
	c.wire.ready(c.info.Load().Protocol)
	c.listen()
	return c, nil
}

// Info returns the server's description of itself.
func (c *Client) Info() ServerInfo { return *c.info.Load() }

// Describe returns the server's description of itself for a caller. In the
// stateless era it may depend on what the caller declares.
func (c *Client) Describe(ctx context.Context, ex tool.Exchange) ServerInfo {
	info := c.Info()
	if !info.Stateless() || rawjson.Field(ex.Capabilities, "extensions") == nil && rawjson.Field(ex.Capabilities, "experimental") == nil {
		return info
	}
	result, err := c.round(ctx, tool.Request{Method: mcp.MethodDiscover, Exchange: ex}, nil)
	if err != nil {
		c.log.DebugContext(ctx, "cannot refresh the server's description", "err", err)
		return info
	}
	if own, ok := discovered(result, info.Protocol); ok {
		return own
	}
	return info
}

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended, or nil if it has not.
func (c *Client) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Close ends the connection. Calls in flight on a link fail; over HTTP each
// continues with its own request.
func (c *Client) Close() error {
	c.end(mcp.ErrClosed)
	return c.wire.close()
}

// end records once why the connection ended and wakes all waiting calls.
func (c *Client) end(err error) {
	c.endOnce.Do(func() {
		c.err = err
		close(c.done)
		c.cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, cl := range c.calls {
			cl.signal()
		}
	})
}

// Notify sends a notification to the server.
func (c *Client) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := c.Err(); err != nil {
		return c.closedError(err)
	}
	if c.stateless.Load() {
		params = c.addMeta(params, c.protocol(), "", nil)
	}
	m := &mcp.Message{Method: method, Params: params}
	c.logMessage("sent", m)
	if err := c.wire.send(ctx, m); err != nil {
		return c.callError(ctx, err)
	}
	return nil
}

// logMessage writes a message to or from the upstream.
func (c *Client) logMessage(direction string, m *mcp.Message) {
	if !c.log.Enabled(c.ctx, telemetry.SlogTrace) {
		return
	}
	mcp.MessageLog{Log: c.log, Level: telemetry.SlogTrace, Redact: c.opts.Redact}.Write(c.ctx, "message "+direction, m)
}
