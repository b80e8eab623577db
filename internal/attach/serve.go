package attach

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Opener returns the function that serves a requested stream. An error is
// shown to the user of the other program.
type Opener func(ctx context.Context, req StreamRequest) (serve func(ctx context.Context, r io.Reader, w io.Writer) error, err error)

// Options are the settings and dependencies of a Server.
type Options struct {
	HTTP    http.Handler // for the command line; requests are the local user's
	Open    Opener       // for streams
	Version string
	Log     *slog.Logger

	// Temporary means that the gateway runs in the process of one client and
	// ends with it. Yield, which may be nil, is called when another gateway
	// asks for the socket; the temporary one must then stop.
	Temporary bool
	Yield     func()

	// Drain waits until no stream has a call in flight or a response to write,
	// or ctx is done. It is called when Serve has to stop, and streams are
	// closed when it returns. If it is nil, they are closed immediately.
	Drain func(ctx context.Context)
}

// Server serves the connections of a socket.
type Server struct {
	opts Options
	log  *slog.Logger
}

// New returns a Server. It starts no goroutines.
func New(o Options) *Server {
	return &Server{opts: o, log: o.Log.With(telemetry.KeyComponent, "attach")}
}

// maxConns bounds the number of open connections.
const maxConns = 1024

// drainTimeout bounds how long requests in flight may take when the server
// stops.
const drainTimeout = 30 * time.Second

// Serve accepts connections on ln until ctx is done, then waits for the calls
// of streams and the HTTP requests in flight, and closes every stream. It
// closes ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := &connQueue{addr: ln.Addr(), conns: make(chan net.Conn), done: ctx.Done()}
	hs := &http.Server{Handler: s.opts.HTTP, ReadHeaderTimeout: handshakeTimeout, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	var wg sync.WaitGroup
	wg.Go(func() { _ = hs.Serve(requests) })
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	slots := make(chan struct{}, maxConns)
	var failed error
	for {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				failed = err
			}
			break
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			s.serve(ctx, streams, c, requests)
		})
	}
	cancel()
	_ = ln.Close()
	end, done := context.WithTimeout(context.Background(), drainTimeout)
	defer done()
	if s.opts.Drain != nil {
		s.opts.Drain(end)
	}
	endStreams()
	if hs.Shutdown(end) != nil {
		_ = hs.Close()
	}
	wg.Wait()
	return failed
}

// AwaitIdle waits until idle returns true twice in succession, or ctx is done.
// Once is not enough, because the caller of several calls may be between two
// of them.
func AwaitIdle(ctx context.Context, idle func() bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for count := 0; ; {
		if count++; !idle() {
			count = 0
		}
		if count == 2 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// serve detects the type of a connection. A stream lasts until the context
// streams is done.
func (s *Server) serve(ctx, streams context.Context, c net.Conn, requests *connQueue) {
	_ = c.SetReadDeadline(time.Now().Add(handshakeTimeout))
	r := bufio.NewReader(c)
	first, err := r.Peek(len("JUNCTOR/"))
	if err != nil {
		_ = c.Close()
		return
	}
	if !outsider(c) {
		s.refuse(ctx, c, string(first) == "JUNCTOR/")
		return
	}
	if string(first) != "JUNCTOR/" {
		_ = c.SetReadDeadline(time.Time{})
		requests.push(&Conn{Conn: c, r: r})
		return
	}
	defer c.Close()
	req, err := readStreamRequest(r)
	if err == nil && req.Yield {
		s.yield(c)
		return
	}
	if err == nil {
		_ = c.SetReadDeadline(time.Time{})
		var serve func(context.Context, io.Reader, io.Writer) error
		if serve, err = s.opts.Open(ctx, req); err == nil {
			if ctx.Err() != nil { // the program connects to the next gateway
				return
			}
			if s.answer(c, reply{OK: true, Version: s.opts.Version, Temporary: s.opts.Temporary, Profile: req.Profile}) != nil {
				return
			}
			if err := serve(streams, r, c); err != nil && ctx.Err() == nil {
				s.log.DebugContext(ctx, "stream ended", "err", err)
			}
			return
		}
	}
	message := err.Error()
	if e, ok := errors.AsType[*tool.Error](err); ok {
		message = e.Msg
	}
	_ = s.answer(c, reply{Message: message})
}

// yield gives the socket to the gateway that asks for it, if this one is
// temporary.
func (s *Server) yield(c net.Conn) {
	if s.opts.Yield == nil {
		_ = s.answer(c, reply{Message: "the running gateway does not give up its socket"})
		return
	}
	_ = s.answer(c, reply{OK: true, Version: s.opts.Version}) // yields even if the reply is not read
	s.opts.Yield()
}

// refuse rejects a program that the gateway started, or that is in another PID
// namespace, in the protocol that it uses. With the gateway's rights it could
// make itself an administrator.
func (s *Server) refuse(ctx context.Context, c net.Conn, stream bool) {
	defer c.Close()
	const why = "this program was started by the gateway, or runs in another PID namespace, and may not use its socket; junctor mcp --standalone works without it"
	s.log.WarnContext(ctx, "connection at the socket refused: the program was started by the gateway or is in another PID namespace")
	_ = c.SetDeadline(time.Now().Add(handshakeTimeout))
	if stream {
		_ = s.answer(c, reply{Message: why})
		return
	}
	body, _ := json.Marshal(map[string]string{"error": "Forbidden", "message": why, "code": string(tool.Denied)}) // strings always marshal
	_, _ = fmt.Fprintf(c, "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
}

func (s *Server) answer(c net.Conn, r reply) error {
	return json.NewEncoder(c).Encode(r) // one line
}

// connQueue is a net.Listener that returns connections accepted elsewhere.
type connQueue struct {
	addr  net.Addr
	conns chan net.Conn
	done  <-chan struct{}
}

func (f *connQueue) push(c net.Conn) {
	select {
	case f.conns <- c:
	case <-f.done:
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (f *connQueue) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It does nothing; done closes the queue.
func (f *connQueue) Close() error { return nil }

// Addr implements net.Listener.
func (f *connQueue) Addr() net.Addr { return f.addr }
