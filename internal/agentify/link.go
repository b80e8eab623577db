package agentify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// codeNotInitialized is the error code for a task sent before initialize.
const codeNotInitialized = -32001

// ErrNoShutdown is the error of a client that sent exit without shutdown. As in
// LSP, the process then exits with an error.
var ErrNoShutdown = errors.New("the client sent exit without shutdown")

// ServeStream serves one client on a pair of byte streams until it sends exit,
// disconnects, or ctx is done. Newline-delimited JSON and Content-Length
// headers are distinguished by the first bytes.
func (f *Face) ServeStream(ctx context.Context, r io.Reader, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &link{exit: cancel, inFlight: map[mcp.ID]int{}, closed: make(chan struct{})}
	l.stream = mcp.NewStream(r, w, mcp.StreamOptions{Framing: mcp.FramingAuto, OnDrop: l.stray})
	err := f.server.ServeLink(ctx, l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.exited && !l.down {
		return ErrNoShutdown
	}
	return err
}

// link lets LSP-style clients and MCP clients be served by one MCP server. It
// translates the differences: initialize needs no protocol version,
// cancellation is $/cancelRequest and gets a response, and the session ends
// with shutdown and exit.
type link struct {
	stream *mcp.Stream
	exit   func()

	mu       sync.Mutex
	inFlight map[mcp.ID]int // requests without a response; clients may reuse an id
	state    linkState
	initID   mcp.ID        // of the initialize in progress
	answered chan struct{} // closed when it has been answered
	down     bool          // shutdown was received
	exited   bool          // exit was received

	closeOnce sync.Once
	closed    chan struct{}
}

type linkState int

const (
	fresh linkState = iota
	initializing
	initialized
)

// Receive implements mcp.Link.
func (l *link) Receive() (mcp.Message, error) {
	for {
		m, err := l.stream.Receive()
		if err != nil {
			if broken, ok := errors.AsType[*mcp.DecodeError](err); ok {
				l.mu.Lock()
				l.inFlight[broken.ID]++ // the server responds to it nevertheless
				l.mu.Unlock()
			} else if !errors.Is(err, io.EOF) { // the framing is lost: send an error before closing
				l.send(&mcp.Message{Error: &mcp.Error{Code: mcp.CodeParseError, Message: "the stream cannot be read any further: " + err.Error()}})
			}
			return m, err
		}
		switch {
		case m.IsRequest():
			if refused := l.admit(&m); refused != nil {
				l.send(&mcp.Message{ID: m.ID, Error: refused})
				continue
			}
			if m.Method == "shutdown" {
				l.send(&mcp.Message{ID: m.ID, Result: json.RawMessage(`null`)})
				continue
			}
		case m.Method == "$/cancelRequest":
			id := idOf(rawjson.Field(m.Params, "id"))
			if !l.cancelled(id) {
				continue
			}
			// Unlike in MCP, a cancelled request gets a response.
			l.send(&mcp.Message{ID: id, Error: &mcp.Error{Code: tool.Canceled.JSONRPC(), Message: "the request was cancelled"}})
			return mcp.Message{Method: mcp.MethodCancelled, Params: rawjson.MarshalOrNull(map[string]any{"requestId": json.RawMessage(id)})}, nil
		case m.Method == mcp.MethodCancelled:
			l.cancelled(idOf(rawjson.Field(m.Params, "requestId")))
		case m.Method == "initialized":
			m.Method = mcp.MethodInitialized
		case m.Method == "exit":
			l.mu.Lock()
			l.exited = true
			l.mu.Unlock()
			l.exit()
			return mcp.Message{}, io.EOF
		}
		return m, nil
	}
}

// admit checks and completes a request, or returns why it is refused.
func (l *link) admit(m *mcp.Message) *mcp.Error {
	l.mu.Lock()
	if l.state == initializing && m.Method != mcp.MethodInitialize {
		answered := l.answered
		l.mu.Unlock()
		select { // initialize is answered quickly
		case <-answered:
		case <-l.closed:
		}
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	switch {
	case l.down:
		return &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "the gateway is shutting down; send exit"}
	case m.Method == "shutdown":
		l.down = true
		return nil
	case m.Method == mcp.MethodInitialize:
		if l.state == fresh {
			l.state, l.initID, l.answered = initializing, m.ID, make(chan struct{})
		}
		if p := bytes.TrimSpace(m.Params); len(p) == 0 || string(p) == "null" {
			m.Params = json.RawMessage(`{}`)
		}
		if rawjson.FieldString(m.Params, "protocolVersion") == "" {
			m.Params = rawjson.SetField(m.Params, rawjson.MarshalOrNull(mcp.Version20251125), "protocolVersion")
		}
	case l.state == fresh && m.Method == methodOrchestrate && rawjson.FieldString(m.Params, "_meta", mcp.MetaProtocolVersion) == "":
		return &mcp.Error{Code: codeNotInitialized, Message: "the gateway is not initialized; send initialize first"}
	}
	l.inFlight[m.ID]++
	return nil
}

// forget removes a request that awaits a response, and reports whether there
// was one. l.mu is held.
func (l *link) forget(id mcp.ID) bool {
	n, ok := l.inFlight[id]
	if n > 1 {
		l.inFlight[id] = n - 1
	} else {
		delete(l.inFlight, id)
	}
	return ok
}

// cancelled is forget for a request that its sender has cancelled.
func (l *link) cancelled(id mcp.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forget(id)
}

// Send implements mcp.Link.
func (l *link) Send(m *mcp.Message) error {
	if m.IsResponse() {
		l.mu.Lock()
		awaited := l.forget(m.ID)
		if l.state == initializing && m.ID == l.initID {
			l.state = fresh
			if m.Error == nil {
				l.state = initialized
			}
			close(l.answered)
		}
		l.mu.Unlock()
		if !awaited { // cancelled, and answered already
			return nil
		}
	}
	return l.stream.Send(m)
}

// Close implements mcp.Link.
func (l *link) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return l.stream.Close()
}

// send sends a message of the gateway. An error is ignored, because the server
// of the stream detects it.
func (l *link) send(m *mcp.Message) { _ = l.stream.Send(m) }

// stray responds to a line that is not a message. For input that is too large,
// Receive returns an error instead.
func (l *link) stray(d mcp.DroppedInput) {
	if !d.TooLarge {
		l.send(&mcp.Message{Error: &mcp.Error{Code: mcp.CodeParseError, Message: "parse error: a line must contain one JSON-RPC message"}})
	}
}

// idOf parses an id in params like the id of a message, so that both can be
// compared.
func idOf(raw json.RawMessage) mcp.ID {
	if len(raw) == 0 {
		return ""
	}
	m, err := mcp.Decode([]byte(`{"jsonrpc":"2.0","method":"x","id":`+string(raw)+`}`), mcp.Limits{})
	if err != nil {
		return ""
	}
	return m.ID
}
