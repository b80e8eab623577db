package app

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"junctor/internal/attach"
	"junctor/internal/discovery"
	"junctor/internal/tool"
)

// Share lets the user's other programs use the gateway, so that they do not
// start every server again, until ctx is done. Meanwhile it applies changes of
// the configuration.
//
// The name of the socket depends on what the configuration uses. If a changed
// configuration has another name, the gateway moves to the new socket and
// closes the streams at the old one: programs whose variables have other
// values than the gateway's must not use its accounts. The others reconnect
// under the new name.
//
// While another gateway has the socket, this one retries, and asks a temporary
// one to yield.
func (a *App) Share(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	cfg := a.config.Load()
	g.Go(func() error { return a.watch(ctx, cfg) })
	g.Go(func() error { return a.share(ctx, "", nil) })
	return g.Wait()
}

// share implements Share. ln is the socket that is already open at current, or
// nil.
func (a *App) share(ctx context.Context, current string, ln net.Listener) error {
	if a.opts.Socket == nil {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	leave := func() {}
	serve := func(ln net.Listener) {
		serving, stop := context.WithCancel(ctx)
		leave = func() { stop(); _ = ln.Close() }
		// After a move to another socket, streams are closed immediately,
		// because their programs reconnect. On shutdown, calls in flight may
		// finish.
		drain := func(end context.Context) {
			if ctx.Err() != nil {
				a.awaitAnswers(end, func() bool { return a.executor.InFlight() == 0 })
			}
		}
		g.Go(func() error { return a.attached(drain).Serve(serving, ln) })
	}
	if ln != nil {
		serve(ln)
	}
	wanted, logged := false, "" // another gateway has the socket; the path for which that was logged
	for ctx.Err() == nil {
		if path := a.opts.Socket(a.config.Load()); path != current || wanted {
			current = path
			next, err := a.listen(ctx, path)
			leave() // only after the next one listens, so that there is always a socket
			leave = func() {}
			wanted = errors.Is(err, attach.ErrRunning)
			if err != nil && logged != path { // serving continues
				logged = path
				a.log.WarnContext(ctx, "junctor mcp and the command line do not use this gateway yet", "err", err)
			} else if next != nil {
				serve(next)
			}
		}
		var retry <-chan time.Time
		if wanted {
			retry = time.After(socketRetry)
		}
		select {
		case <-a.reloaded:
		case <-retry:
		case <-ctx.Done():
		}
	}
	leave()
	return g.Wait()
}

const (
	// socketRetry is the interval between attempts to open a socket that
	// another gateway has.
	socketRetry = 2 * time.Second
	// yieldWait bounds how long a temporary gateway may take to close its
	// socket.
	yieldWait = 5 * time.Second
	// yieldPoll is the polling interval meanwhile. It is shorter than that of
	// the programs that used the temporary gateway and try to take its place.
	yieldPoll = 20 * time.Millisecond
)

// freeSocket opens the gateway's socket. It returns nil if another gateway has
// it or it cannot be opened; Share then retries.
func (a *App) freeSocket() (path string, ln net.Listener) {
	if a.opts.Socket == nil {
		return "", nil
	}
	if path = a.opts.Socket(a.config.Load()); path == "" {
		return "", nil
	}
	ln, err := attach.Listen(path)
	if err != nil {
		return "", nil
	}
	return path, ln
}

// listen opens a socket; an empty path is none. If a temporary gateway has it,
// listen asks that one to yield.
func (a *App) listen(ctx context.Context, path string) (net.Listener, error) {
	if path == "" {
		return nil, nil
	}
	ln, err := attach.Listen(path)
	if !errors.Is(err, attach.ErrRunning) || a.opts.Temporary || attach.Yield(ctx, path) != nil {
		return ln, err
	}
	for end := time.Now().Add(yieldWait); errors.Is(err, attach.ErrRunning) && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(yieldPoll):
		}
		ln, err = attach.Listen(path)
	}
	return ln, err
}

// Host serves one MCP client on a pair of byte streams, and the user's other
// programs on ln, which listens at path, until the client disconnects or ctx
// is done. If ln is nil, it serves only the client. It closes ln, and calls
// left after the last client was served and before the servers are stopped.
func (a *App) Host(ctx context.Context, view discovery.View, in io.Reader, out io.Writer, path string, ln net.Listener, left func()) error {
	core, stopCore := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCore()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var upstreams, others errgroup.Group
	upstreams.Go(func() error { return a.Run(core) })
	cfg := a.config.Load()
	others.Go(func() error { return a.watch(ctx, cfg) })
	if ln != nil {
		others.Go(func() error { return a.share(ctx, path, ln) })
	}
	err := a.serveStream(ctx, view, in, out)
	stop()
	a.stopWaiting()
	err = errors.Join(err, others.Wait())
	left()
	stopCore()
	return errors.Join(err, upstreams.Wait())
}

// localWith returns a context with the local user, restricted to a profile; ""
// is none.
func (a *App) localWith(ctx context.Context, profile string) (context.Context, error) {
	caller := tool.Local
	if profile != "" {
		var err error
		if caller, err = a.profiles.Narrow(caller, profile); err != nil {
			return nil, err
		}
	}
	return tool.WithCaller(ctx, caller), nil
}

func (a *App) serveStream(ctx context.Context, view discovery.View, in io.Reader, out io.Writer) error {
	ctx, err := a.localWith(ctx, view.Profile)
	if err != nil {
		return err
	}
	return a.discovery.ServeStream(ctx, view, in, out)
}

// CheckView returns an error if a view cannot be served.
func (a *App) CheckView(ctx context.Context, view discovery.View) error {
	ctx, err := a.localWith(ctx, view.Profile)
	if err != nil {
		return err
	}
	_, err = a.discovery.Open(ctx, string(view.Mode), view.Server)
	return err
}

// attached returns the server for programs that use the gateway through its
// socket.
func (a *App) attached(drain func(context.Context)) *attach.Server {
	return attach.New(attach.Options{
		Drain: drain,
		HTTP:  a.LocalHandler(), Version: a.opts.Version, Log: a.log, Temporary: a.opts.Temporary, Yield: a.opts.Yield,
		Open: func(ctx context.Context, w attach.StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
			ctx, err := a.localWith(ctx, w.Profile)
			if err != nil {
				return nil, err
			}
			serve, err := a.discovery.Open(ctx, w.Mode, w.Server)
			if err != nil {
				return nil, err
			}
			caller := tool.CallerFrom(ctx)
			return func(ctx context.Context, in io.Reader, out io.Writer) error {
				return serve(tool.WithCaller(ctx, caller), in, out)
			}, nil
		},
	})
}
