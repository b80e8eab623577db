package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/http1"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// NewHTTP returns a transport over streamable HTTP, in either era. It falls
// back to the legacy SSE transport if the server uses that, unless the options
// forbid it.
func NewHTTP(o HTTPOptions) Transport { return httpTransport{o} }

type httpTransport struct{ o HTTPOptions }

func (t httpTransport) open(_ context.Context, c *Client) error {
	e, err := newEndpoint(t.o)
	if err != nil {
		return err
	}
	c.inline = true
	w := &httpWire{httpEndpoint: e, c: c, responders: make(chan struct{}, maxServerRequests), sessionLock: make(chan struct{}, 1)}
	w.version.Store(new(string))
	c.wire = w
	return nil
}

// httpWire is streamable HTTP: each request has its own response, read by the
// goroutine that made the call.
type httpWire struct {
	*httpEndpoint
	c *Client

	version     atomic.Pointer[string] // negotiated; empty before
	session     atomic.Pointer[string] // of the handshake era; nil for none
	sessionLock chan struct{}          // full while a lost session is being replaced
	responders  chan struct{}          // one element for each message being posted by respond

	mu           sync.Mutex
	stopStream   context.CancelFunc // of the GET stream
	opening      <-chan struct{}    // closed when the GET stream is open or refused; nil without one
	streamOpened atomic.Bool
}

// errSessionLost means that the server no longer has the session.
var errSessionLost = errors.New("the server has lost the session")

// errAmbiguousSession is a refusal that may mean a lost session, or may concern
// only the request.
type errAmbiguousSession struct {
	answer mcp.Message
	err    error
}

func (e *errAmbiguousSession) Error() string {
	return "the server refused the request, and may have lost the session"
}

// refusesSession sends a ping to determine whether the server refuses the
// session itself.
func (w *httpWire) refusesSession(ctx context.Context, session *string) bool {
	ping := &mcp.Message{ID: mcp.NumberID(w.c.nextID.Add(1)), Method: mcp.MethodPing}
	resp, err := w.post(ctx, ping, session, mcp.AppendMessage(nil, ping))
	if err != nil {
		return false
	}
	readErrorBody(resp)
	return resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusNotFound
}

func (w *httpWire) do(ctx context.Context, cl *pendingRequest, m *mcp.Message) (mcp.Message, error) {
	for first := true; ; first = false {
		var session *string
		if m.Method != mcp.MethodInitialize {
			var err error
			if session, err = w.readySession(ctx); err != nil {
				return mcp.Message{}, err
			}
		}
		answer, err := w.exchange(ctx, cl, m, session)
		if doubt, ok := errors.AsType[*errAmbiguousSession](err); ok {
			if !first || !w.refusesSession(ctx, session) {
				return doubt.answer, doubt.err
			}
			err = errSessionLost
		}
		if err == nil || !first || !errors.Is(err, errSessionLost) || m.Method == mcp.MethodInitialize {
			return answer, err
		}
		if err := w.recoverSession(ctx, session); err != nil {
			return mcp.Message{}, err
		}
	}
}

// Values of headers that every POST has. They must not be modified.
var (
	acceptBoth  = []string{"application/json, text/event-stream"}
	contentJSON = []string{"application/json"}
)

// setHeader sets the headers of a POST.
func (w *httpWire) setHeader(h http.Header, m *mcp.Message, session *string) {
	h["Accept"], h["Content-Type"] = acceptBoth, contentJSON
	if _, own := h["Idempotency-Key"]; !own && repeatable(m.Method) {
		h["Idempotency-Key"] = nil // not sent: it tells the transport that the request may be retried, see net/http
	}
	if stateless := w.c.stateless.Load(); stateless || m.Method == mcp.MethodDiscover {
		version := w.c.protocol() // what addMeta writes
		if m.Method == mcp.MethodDiscover {
			version = cmp.Or(rawjson.FieldString(m.Params, "_meta", mcp.MetaProtocolVersion), version)
		}
		h["Mcp-Protocol-Version"] = []string{version}
		w.c.mirror(h, m)
		return
	}
	if v := *w.version.Load(); v != "" && m.Method != mcp.MethodInitialize {
		h["Mcp-Protocol-Version"] = []string{v}
	}
	if session != nil {
		h["Mcp-Session-Id"] = []string{*session}
	}
}

// repeatable reports whether a request may be retried on a new connection if
// the server closed the old one without a response, although it may have
// processed the request. A second initialize leaves an unused session at worst.
func repeatable(method string) bool {
	switch method {
	case mcp.MethodInitialize, mcp.MethodDiscover, mcp.MethodPing, mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodPromptsGet,
		mcp.MethodResourcesList, mcp.MethodTemplatesList, mcp.MethodResourcesRead, mcp.MethodComplete, mcp.MethodTasksGet, mcp.MethodTasksList:
		return true
	}
	return false
}

// exchange posts a request and reads its response.
func (w *httpWire) exchange(ctx context.Context, cl *pendingRequest, m *mcp.Message, session *string) (mcp.Message, error) {
	reqCtx, cancel, stop := ctx, func() {}, func() bool { return true }
	if _, own := w.rt.(*http1.Transport); !own || w.url.Scheme != "http" {
		// The request outlives the call while its stream is drained. The body
		// of an http1.Transport can be detached from the context instead.
		reqCtx, cancel = context.WithCancel(context.WithoutCancel(ctx))
		stop = context.AfterFunc(ctx, cancel)
		defer stop()
	}
	body := mcp.AppendMessage(make([]byte, 0, len(m.Params)+len(m.Method)+64), m)
	resp, err := w.post(reqCtx, m, session, body)
	if err != nil {
		cancel()
		return mcp.Message{}, w.interrupted(ctx, cl, err)
	}
	if m.Method == mcp.MethodInitialize && resp.StatusCode == http.StatusOK {
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			w.session.Store(&id)
		} else {
			w.session.Store(nil)
		}
	}
	if resp.StatusCode == http.StatusOK && isEventStream(resp.Header.Get("Content-Type")) {
		answer, err := w.readStream(ctx, reqCtx, cancel, stop, cl, resp)
		return answer, w.interrupted(ctx, cl, err)
	}
	defer cancel()
	answer, err := w.readPlain(ctx, cl, resp, session)
	return answer, w.interrupted(ctx, cl, err)
}

func (w *httpWire) post(ctx context.Context, m *mcp.Message, session *string, body []byte) (*http.Response, error) {
	return w.httpEndpoint.send(ctx, http.MethodPost, w.url, func(h http.Header) { w.setHeader(h, m, session) }, body)
}

// interrupted cancels a call at the server if its context ended before the
// response. In the stateless era closing the stream has already cancelled it.
func (w *httpWire) interrupted(ctx context.Context, cl *pendingRequest, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	cl.finish()
	if !w.c.stateless.Load() && cl.method != mcp.MethodInitialize {
		w.respond(cancelMessage(ctx, cl))
	}
	return ctx.Err()
}

// readPlain reads a response that is not an event stream.
func (w *httpWire) readPlain(ctx context.Context, cl *pendingRequest, resp *http.Response, session *string) (mcp.Message, error) {
	if resp.StatusCode == http.StatusAccepted && w.hasStream(ctx) {
		readErrorBody(resp)
		return w.await(ctx, cl) // some servers answer on the GET stream
	}
	if answer, err, ok := cl.drain(); ok { // it arrived on the GET stream, which may have ended since
		readErrorBody(resp)
		return answer, err
	}
	if resp.StatusCode != http.StatusOK {
		return w.refusal(cl, resp, session)
	}
	if contentType := resp.Header.Get("Content-Type"); contentType != "" && !isJSON(contentType) {
		return mcp.Message{}, newHTTPError(resp, readErrorBody(resp))
	}
	body, err := w.readAll(resp, cl.ex.Memory)
	if err != nil {
		return mcp.Message{}, err
	}
	var answer mcp.Message
	found := false
	batch := mcp.DecodeEach(body, w.limits, func(m mcp.Message, decodeErr error) {
		switch {
		case decodeErr != nil:
			err = decodeErr
		case m.IsResponse() && answers(&m, cl):
			answer, found = m, true
		case m.IsResponse():
			err = &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server's response belongs to a different request (wrong id)"}
		default:
			w.c.handle(&m, cl)
		}
	})
	if batch || answer.Result == nil { // these outlive the call
		cl.ex.Memory.Keep()
	}
	if !found && err == nil {
		err = &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server's message contains no response"}
	}
	if found {
		return answer, nil
	}
	return mcp.Message{}, err
}

// hasStream reports whether the GET stream is open. It waits up to
// streamTimeout for one that is still being opened, because a slow server may
// answer on it.
func (w *httpWire) hasStream(ctx context.Context) bool {
	w.mu.Lock()
	opening := w.opening
	w.mu.Unlock()
	if opening != nil {
		select {
		case <-opening:
		case <-time.After(streamTimeout):
		case <-ctx.Done():
		case <-w.c.done:
		}
	}
	return w.streamOpened.Load()
}

// refusal reads a response whose status is not 200: a JSON-RPC error, a lost
// session, or an HTTP error.
func (w *httpWire) refusal(cl *pendingRequest, resp *http.Response, session *string) (mcp.Message, error) {
	body := readErrorBody(resp)
	if session != nil && resp.StatusCode == http.StatusNotFound {
		return mcp.Message{}, errSessionLost
	}
	answer, err := w.refused(cl, resp, body)
	if session != nil && resp.StatusCode == http.StatusBadRequest {
		return mcp.Message{}, &errAmbiguousSession{answer, err} // many servers copied this response to a lost session from an example
	}
	return answer, err
}

// refused returns the JSON-RPC error in the body of a refusal, or else an
// HTTPError.
func (w *httpWire) refused(cl *pendingRequest, resp *http.Response, body []byte) (mcp.Message, error) {
	if !(resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		if m, err := mcp.Decode(body, w.limits); err == nil && m.Error != nil && (m.ID == "" || m.ID == cl.idText) {
			m.ID = cl.idText
			return m, nil
		}
	}
	return mcp.Message{}, newHTTPError(resp, body)
}

// await waits for a response that arrives on another stream.
func (w *httpWire) await(ctx context.Context, cl *pendingRequest) (mcp.Message, error) {
	for {
		select {
		case <-cl.wake:
			if answer, err, ok := cl.drain(); ok {
				return answer, err
			}
		case <-ctx.Done():
			return mcp.Message{}, ctx.Err()
		case <-w.c.done:
			return mcp.Message{}, w.c.err
		}
	}
}

func (w *httpWire) send(ctx context.Context, m *mcp.Message) error {
	resp, err := w.post(ctx, m, w.session.Load(), mcp.AppendMessage(nil, m))
	if err != nil {
		return err
	}
	body := readErrorBody(resp)
	if resp.StatusCode/100 != 2 {
		return newHTTPError(resp, body)
	}
	return nil
}

// backgroundPostTimeout bounds a POST that no caller waits for.
const backgroundPostTimeout = 15 * time.Second

func (w *httpWire) respond(m *mcp.Message) {
	select {
	case w.responders <- struct{}{}:
	default:
		w.c.warn("message to the server dropped: too many are already being sent", "method", m.Method)
		return
	}
	go func() {
		defer func() { <-w.responders }()
		ctx, cancel := context.WithTimeout(w.c.ctx, backgroundPostTimeout)
		defer cancel()
		if err := w.send(ctx, m); err != nil {
			w.c.log.Debug("cannot send a message to the server", "method", m.Method, "err", err)
		}
	}()
}

func (w *httpWire) ready(protocol string) {
	w.version.Store(&protocol)
	if mcp.Stateless(protocol) || w.o.NoStandalone {
		return
	}
	ctx, cancel := context.WithCancel(w.c.ctx)
	answered := make(chan struct{})
	w.mu.Lock()
	w.stopStream, w.opening = cancel, answered
	w.mu.Unlock()
	// Messages sent before the stream is open are lost, so wait for it. Do not
	// wait for long, because some servers send no headers before the first
	// event.
	go w.standalone(ctx, w.session.Load(), sync.OnceFunc(func() { close(answered) }))
	select {
	case <-answered:
	case <-time.After(streamTimeout):
	case <-ctx.Done():
	}
}

// streamTimeout is how long a new session waits for its GET stream.
const streamTimeout = 2 * time.Second

func (w *httpWire) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopStream != nil {
		w.stopStream()
		w.stopStream = nil
	}
}

// closeTimeout bounds the request that ends a session.
const closeTimeout = 3 * time.Second

func (w *httpWire) close() error {
	w.stop()
	session := w.session.Swap(nil)
	if session == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	resp, err := w.httpEndpoint.send(ctx, http.MethodDelete, w.url, func(h http.Header) {
		h.Set("Mcp-Session-Id", *session)
		if v := *w.version.Load(); v != "" {
			h.Set("Mcp-Protocol-Version", v)
		}
	}, nil)
	if err != nil {
		return nil // a server that is gone has also lost the session
	}
	readErrorBody(resp)
	return nil
}
