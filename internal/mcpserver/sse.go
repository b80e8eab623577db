package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// The legacy SSE transport of 2024-11-05, the only one that some clients
// support: a GET opens an event stream whose first event contains the address
// for messages. Messages posted there are answered on the stream.

// sseParam is the query parameter that identifies the stream in the address for
// messages.
const sseParam = "sessionId"

// maxStreams bounds the streams of the legacy transport.
const maxStreams = 1000

// sseTable holds the open streams of the legacy transport.
type sseTable struct {
	mu    sync.Mutex
	links map[string]*sseServerLink
}

// asksForSSE reports whether a GET can only belong to the legacy transport: it
// has neither a session nor a version, and explicitly accepts event streams.
func asksForSSE(r *http.Request) bool {
	if r.Header.Get(headerSession) != "" || r.Header.Get(headerProtocol) != "" || r.Header.Get(headerLastEvent) != "" {
		return false
	}
	_, events := accepts(r.Header.Values("Accept"))
	return events && len(r.Header.Values("Accept")) > 0
}

// serveSSE serves the GET of the legacy transport.
func (s *Server) serveSSE(w http.ResponseWriter, r *http.Request) {
	caller := tool.CallerFrom(r.Context())
	link := &sseServerLink{srv: s, res: &response{w: w, r: r}, caller: caller.View(),
		in: make(chan incoming, 16), done: make(chan struct{})}
	id := rand.Text()
	s.sse.mu.Lock()
	full := len(s.sse.links) >= maxStreams
	if !full {
		if s.sse.links == nil {
			s.sse.links = map[string]*sseServerLink{}
		}
		s.sse.links[id] = link
	}
	s.sse.mu.Unlock()
	if full {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "", &mcp.Error{Code: tool.RateLimited.JSONRPC(), Message: "too many streams; try again shortly"})
		return
	}
	defer func() {
		s.sse.mu.Lock()
		delete(s.sse.links, id)
		s.sse.mu.Unlock()
		_ = link.Close()
	}()
	query := r.URL.Query()
	query.Set(sseParam, id)
	address := (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
	startEvents(w)
	if !s.flush(link.res, []byte("event: endpoint\ndata: "+address+"\n\n")) {
		return
	}
	stop := context.AfterFunc(r.Context(), func() { _ = link.Close() })
	defer stop()
	go link.keepAlive(s.opts.KeepAlive)
	if err := s.ServeLink(r.Context(), link); err != nil && r.Context().Err() == nil {
		s.log.DebugContext(r.Context(), "stream ended", "err", err)
	}
}

// postSSE accepts messages for a stream of the legacy transport.
func (s *Server) postSSE(p *post, id string) {
	s.sse.mu.Lock()
	link := s.sse.links[id]
	s.sse.mu.Unlock()
	if link == nil || link.caller != p.caller.View() {
		s.reject(p.w, p.r, http.StatusNotFound, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "no such stream; open one with GET"})
		return
	}
	for i := range p.messages {
		if !link.take(p.r.Context(), incoming{m: p.messages[i]}) {
			refuse(p.w, http.StatusNotFound, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "the stream has ended; open one with GET"})
			return
		}
	}
	for _, broken := range p.broken {
		link.take(p.r.Context(), incoming{err: broken})
	}
	p.w.WriteHeader(http.StatusAccepted)
}

// incoming is a posted message, or the error from decoding it.
type incoming struct {
	m   mcp.Message
	err error
}

// sseServerLink is a Link that receives messages by POST and sends them on one
// event stream.
type sseServerLink struct {
	srv    *Server
	caller string
	in     chan incoming

	mu   sync.Mutex // held while writing
	res  *response
	once sync.Once
	done chan struct{}
}

func (l *sseServerLink) take(ctx context.Context, r incoming) bool {
	select {
	case l.in <- r:
		return true
	case <-l.done:
	case <-ctx.Done():
	}
	return false
}

// Receive implements [mcp.Link].
func (l *sseServerLink) Receive() (mcp.Message, error) {
	select {
	case r := <-l.in:
		return r.m, r.err
	case <-l.done:
		return mcp.Message{}, io.EOF
	}
}

// Send implements [mcp.Link].
func (l *sseServerLink) Send(m *mcp.Message) error {
	return l.write(appendEvent(nil, "", mcp.Encode(m)))
}

var errStreamEnded = errors.New("the stream has ended")

func (l *sseServerLink) write(data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done: // the response must no longer be used
		return errStreamEnded
	default:
	}
	if !l.srv.flush(l.res, data) {
		return errStreamEnded
	}
	return nil
}

func (l *sseServerLink) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-tick.C:
			if l.write([]byte(": \n\n")) != nil {
				_ = l.Close()
				return
			}
		}
	}
}

// Close implements [mcp.Link].
func (l *sseServerLink) Close() error {
	l.once.Do(func() {
		l.mu.Lock() // not in the middle of a write
		defer l.mu.Unlock()
		close(l.done)
	})
	return nil
}
