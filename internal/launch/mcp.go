package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"junctor/internal/app"
	"junctor/internal/attach"
	"junctor/internal/config"
	"junctor/internal/discovery"
	"junctor/internal/telemetry"
)

const (
	// restartWait is how long a client waits for the restart of a permanent
	// gateway before its process becomes the gateway.
	restartWait = 20 * time.Second
	// takeoverWait is the same for a temporary gateway. It gives a permanent
	// gateway the time to acquire the socket.
	takeoverWait = 300 * time.Millisecond
	// lockWait is how long another process may hold the lock of the socket
	// without answering.
	lockWait = 30 * time.Second

	reconnectPoll = 50 * time.Millisecond
)

// mcpSession is one client of `junctor mcp`. It uses the gateway of its
// configuration. If none runs, the process becomes that gateway, for this client
// and for others.
type mcpSession struct {
	*Launcher
	cfg     *config.Config // nil if the file is invalid
	o       config.Options
	view    discovery.View
	request attach.StreamRequest

	ctx     context.Context // of the session
	hosting sync.WaitGroup

	mu     sync.Mutex
	failed error // of the gateway in this process
}

// ServeMCP serves one client on stdin and stdout through the gateway of the same
// configuration, which this process becomes if none runs. If the configuration
// is invalid, cfg is nil and invalid is the error; then only a gateway that
// already runs can serve the client.
func (l *Launcher) ServeMCP(ctx context.Context, cfg *config.Config, o config.Options, view discovery.View, invalid error) error {
	s := &mcpSession{Launcher: l, cfg: cfg, o: o, view: view, request: attach.StreamRequest{Mode: string(view.Mode), Server: view.Server, Profile: view.Profile}}
	return s.run(ctx, invalid)
}

// ServeMCPAlone serves a client with a gateway that is not shared.
func (l *Launcher) ServeMCPAlone(ctx context.Context, cfg *config.Config, o config.Options, view discovery.View) error {
	a, err := l.Build(ctx, cfg, o, telemetry.LevelWarn, nil)
	if err != nil {
		return err
	}
	err = a.Host(ctx, view, l.In, l.Out, "", nil, func() {})
	return errors.Join(err, a.Close())
}

// run serves the client until it disconnects.
func (s *mcpSession) run(ctx context.Context, invalid error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.ctx = ctx
	wait := time.Duration(0)
	connect := func(attempt context.Context) (io.ReadWriteCloser, error) {
		conn, temporary, err := s.connect(attempt, wait, invalid)
		wait = restartWait
		if temporary {
			wait = takeoverWait
		}
		return conn, err
	}
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	relay := attach.Relay{Reconnect: connect}
	err = relay.Run(ctx, conn, s.In, s.Out)
	stop()
	s.hosting.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		err = s.failed
	}
	return err
}

// connect returns a stream to a gateway. If none is found within wait, it
// starts one in this process. temporary reports whether the gateway ends with
// its client.
func (s *mcpSession) connect(ctx context.Context, wait time.Duration, invalid error) (conn io.ReadWriteCloser, temporary bool, err error) {
	began := time.Now()
	for {
		s.mu.Lock()
		failed := s.failed
		s.mu.Unlock()
		if failed != nil {
			return nil, false, failed
		}
		if path := s.findGateway(ctx, invalid); path != "" {
			found, err := attach.Open(ctx, path, s.request)
			if err == nil {
				return found, found.Temporary, nil
			}
			if !errors.Is(err, attach.ErrNotRunning) {
				return nil, false, err
			}
		}
		waited := time.Since(began)
		if s.cfg == nil && waited >= wait {
			return nil, false, invalid
		}
		if s.cfg != nil && waited >= wait {
			conn, err := s.host(waited < wait+lockWait)
			if !errors.Is(err, attach.ErrRunning) {
				return conn, true, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-time.After(reconnectPoll):
		}
		// The file may have changed, and with it the socket of the gateway.
		if changed, _, err := config.Load(s.o); err == nil {
			s.cfg = changed
		}
	}
}

// findGateway returns the socket of the gateway to use, or "" if there is none.
func (s *mcpSession) findGateway(ctx context.Context, invalid error) string {
	if s.cfg == nil {
		return s.FindWithInvalidConfig(ctx, s.o, invalid)
	}
	return s.Find(ctx, s.cfg)
}

// host starts a gateway in this process and returns a stream to it. If share is
// set, other processes can use it too; attach.ErrRunning means that one of them
// has started one meanwhile.
func (s *mcpSession) host(share bool) (io.ReadWriteCloser, error) {
	var ln net.Listener
	path := s.Socket(s.cfg)
	if share && path != "" {
		var err error
		if ln, err = attach.Listen(path); errors.Is(err, attach.ErrRunning) {
			return nil, err
		} else if err != nil { // for example, the folder is not writable
			s.Note("other clients cannot use this gateway: %v", err)
			ln = nil
		}
	}
	ctx, stop := context.WithCancel(s.ctx)
	a, err := s.Build(ctx, s.cfg, s.o, telemetry.LevelWarn, func(o *app.Options) { o.Temporary, o.Yield = true, stop })
	if err == nil {
		if err = a.CheckView(ctx, s.view); err != nil {
			err = errors.Join(err, a.Close())
		}
	}
	if err != nil {
		stop()
		if ln != nil {
			_ = ln.Close()
		}
		return nil, err
	}
	near, far := attach.Pipe()
	s.hosting.Go(func() {
		defer stop()
		// Host closes far when this gateway can no longer be found, so that the
		// relay connects to another gateway or ends.
		err := a.Host(ctx, s.view, far, far, path, ln, func() { _ = far.Close() })
		if err = errors.Join(err, a.Close()); err != nil && ctx.Err() == nil {
			s.mu.Lock()
			s.failed = fmt.Errorf("the gateway of this process: %w", err)
			s.mu.Unlock()
		}
	})
	return near, nil
}
