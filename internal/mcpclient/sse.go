package mcpclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// NewSSE returns a Transport over HTTP+SSE as of 2024-11-05: one event stream
// from the server, whose first event contains the address for posts.
func NewSSE(o HTTPOptions) Transport { return sseTransport{o} }

type sseTransport struct{ o HTTPOptions }

func (t sseTransport) open(ctx context.Context, c *Client) error {
	e, err := newEndpoint(t.o)
	if err != nil {
		return err
	}
	if c.opts.Protocol == "" {
		c.opts.Protocol = mcp.Version20251125 // the transport is older than server/discover
	}
	link, err := dialSSE(ctx, c.ctx, e)
	if err != nil {
		return c.callError(ctx, err)
	}
	return openLink(c, link)
}

// sseLink is the legacy transport as a Link.
type sseLink struct {
	e      *httpEndpoint
	post   *url.URL
	events *mcp.EventReader
	body   func() error
	ctx    context.Context // cancelled with the link
	cancel context.CancelFunc
	queue  []sseEvent // decoded and not yet received
}

// sseEvent is a message of the stream, or the error from decoding it.
type sseEvent struct {
	m   mcp.Message
	err error
}

// dialSSE opens the stream and waits for the address. ctx bounds dialSSE, life
// bounds the link.
func dialSSE(ctx, life context.Context, e *httpEndpoint) (*sseLink, error) {
	l := &sseLink{e: e}
	l.ctx, l.cancel = context.WithCancel(life)
	stop := context.AfterFunc(ctx, l.cancel)
	defer stop()
	resp, err := e.send(l.ctx, http.MethodGet, e.url, func(h http.Header) { h.Set("Accept", "text/event-stream") }, nil)
	if err != nil {
		l.cancel()
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || !isEventStream(resp.Header.Get("Content-Type")) {
		l.cancel()
		return nil, newHTTPError(resp, readErrorBody(resp))
	}
	l.events, l.body = mcp.NewEventReader(resp.Body, e.limits), resp.Body.Close
	name, data, err := l.events.Next()
	if err != nil || name != "endpoint" {
		l.cancel()
		resp.Body.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server's event stream does not begin with the endpoint event", Err: err}
	}
	l.post, err = resp.Request.URL.Parse(string(data))
	if err != nil || !sameOrigin(e.url, l.post) {
		l.cancel()
		resp.Body.Close()
		return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server's endpoint event names an address of another origin", Err: err}
	}
	return l, nil
}

// Receive implements [mcp.Link].
func (l *sseLink) Receive() (mcp.Message, error) {
	for len(l.queue) == 0 {
		name, data, err := l.events.Next()
		if err != nil {
			if _, ok := errors.AsType[*mcp.DecodeError](err); !ok {
				l.body()
			}
			return mcp.Message{}, err
		}
		if name != "" && name != "message" {
			continue
		}
		mcp.DecodeEach(data, l.e.limits, func(m mcp.Message, err error) { l.queue = append(l.queue, sseEvent{m, err}) })
	}
	next := l.queue[0]
	l.queue = l.queue[1:]
	return next.m, next.err
}

// ssePostTimeout bounds one post, whose response arrives on the stream instead.
const ssePostTimeout = 30 * time.Second

// Send implements [mcp.Link].
func (l *sseLink) Send(m *mcp.Message) error {
	ctx, cancel := context.WithTimeout(l.ctx, ssePostTimeout)
	defer cancel()
	resp, err := l.e.send(ctx, http.MethodPost, l.post, func(h http.Header) { h["Content-Type"] = contentJSON }, mcp.AppendMessage(nil, m))
	if err != nil {
		return err
	}
	body := readErrorBody(resp)
	if resp.StatusCode/100 != 2 {
		return newHTTPError(resp, body)
	}
	return nil
}

// Close implements [mcp.Link].
func (l *sseLink) Close() error {
	l.cancel()
	return nil
}

// fallBack tries the legacy transport if streamable HTTP was refused in the way
// that legacy servers do. It reports false if the refusal was different or
// there is no such stream.
func (c *Client) fallBack(ctx context.Context, refusal error) bool {
	w, ok := c.wire.(*httpWire)
	h, refused := errors.AsType[*HTTPError](refusal)
	if !ok || !refused || w.o.StreamableOnly {
		return false
	}
	switch h.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
	default:
		return false
	}
	link, err := dialSSE(ctx, c.ctx, w.httpEndpoint)
	if err != nil {
		c.log.Debug("no legacy event stream either", "err", err)
		return false
	}
	c.inline = false
	return openLink(c, link) == nil
}
