package app

import (
	"context"
	"io"
	"net"

	"golang.org/x/sync/errgroup"

	"junctor/internal/attach"
	"junctor/internal/tool"
)

// Share lets this user's other programs use the gateway, instead of starting
// every server again, until ctx is done.
//
// The socket is named by what the configuration uses. When a changed
// configuration has another name, the gateway moves there and ends the streams
// at the old one: programs whose variables have other values than the gateway's
// must not use its accounts. The others find it again under the new name.
func (a *App) Share(ctx context.Context) error {
	if a.opts.Socket == nil {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	current, leave := "", func() {}
	for ctx.Err() == nil {
		if path := a.opts.Socket(a.config.Load()); path != current {
			current = path
			next, err := a.listen(path)
			leave() // after the next one listens, so that there is always one to be found
			leave = func() {}
			if err != nil { // it serves all the same
				a.log.WarnContext(ctx, "junctor mcp and the command line will start servers of their own", "err", err)
			} else if next != nil {
				serving, stop := context.WithCancel(ctx)
				leave = func() { stop(); _ = next.Close() }
				g.Go(func() error { return a.attached().Serve(serving, next) })
			}
		}
		select {
		case <-a.reloaded:
		case <-ctx.Done():
		}
	}
	leave()
	return g.Wait()
}

// listen opens a socket; an empty path is none.
func (a *App) listen(path string) (net.Listener, error) {
	if path == "" {
		return nil, nil
	}
	return attach.Listen(path)
}

// attached serves the programs that use the gateway through its socket.
func (a *App) attached() *attach.Server {
	return attach.New(attach.Options{
		HTTP: a.LocalHandler(), Version: a.opts.Version, Log: a.log,
		Open: func(ctx context.Context, w attach.StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
			return a.discovery.Open(tool.WithCaller(ctx, tool.Local), w.Mode, w.Server)
		},
	})
}
