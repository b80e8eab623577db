package launch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"junctor/internal/apiclient"
	"junctor/internal/app"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/telemetry"
	"junctor/internal/terminal"
	"junctor/internal/upstream"
)

// Gateway is the gateway that a command uses: the running one with the same
// configuration, or one in this process that lives as long as the command.
type Gateway struct {
	apiclient.Client
	launcher *Launcher
	own      *app.App // the gateway in this process; nil if another one is used

	// Run starts the servers of a gateway in this process, or only the named
	// ones. Until then the gateway has the tools that were last stored.
	Run   func(servers ...string)
	Close func()
}

// Attach returns the Gateway that client connects to.
func (l *Launcher) Attach(client *http.Client) *Gateway {
	return &Gateway{launcher: l, Client: apiclient.Client{HTTP: client}, Run: func(...string) {}, Close: func() {}}
}

// Start returns a gateway in this process that can run the named upstreams, or
// all. It does not run them yet.
func (l *Launcher) Start(ctx context.Context, cfg *config.Config, o config.Options, only ...string) (*Gateway, error) {
	unknown := func(name string) bool {
		_, ok := cfg.Server(name)
		return !ok && name != "junctor"
	}
	if len(only) == 0 || slices.ContainsFunc(only, unknown) {
		only = nil // all, so that the gateway can suggest others for an unknown one
	}
	var started []string // empty for all
	a, err := l.Build(ctx, cfg, o, telemetry.LevelError, func(o *app.Options) {
		o.Only, o.AwaitInstall = only, true
		o.Starts = func(server string) bool { return len(started) == 0 || slices.Contains(started, server) }
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	var once sync.Once
	return &Gateway{
		launcher: l, Client: apiclient.Client{HTTP: a.LocalClient()}, own: a,
		Run: func(servers ...string) {
			once.Do(func() {
				started = servers
				running.Go(func() { l.printError(a.Run(ctx)) })
			})
		},
		Close: func() {
			cancel()
			running.Wait()
			l.printError(a.Close())
		},
	}, nil
}

// Share runs a gateway in this process that other programs can find too, and
// returns a client of it. Its socket does not move when the configuration
// changes, because the client would not find the new one.
func (l *Launcher) Share(ctx context.Context, cfg *config.Config, o config.Options) (client *http.Client, stop func(), err error) {
	path := l.Socket(cfg)
	if path == "" {
		return nil, nil, errNoSocket
	}
	a, err := l.Build(ctx, cfg, o, telemetry.LevelError, func(o *app.Options) {
		o.Temporary, o.Socket = true, func(*config.Config) string { return path }
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 2)
	go func() { done <- a.Run(ctx) }()
	go func() { done <- a.Share(ctx) }()
	stop = func() {
		cancel()
		l.printError(errors.Join(<-done, <-done, a.Close()))
	}
	for deadline := time.Now().Add(socketTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if client := l.Running(ctx, cfg); client != nil {
			return client, stop, nil
		}
	}
	stop()
	return nil, nil, errNoSocket
}

var errNoSocket = errors.New("the chat needs a socket in your runtime or data folder and could not open one")

func (l *Launcher) printError(err error) {
	if err != nil {
		fmt.Fprintln(l.Err, "junctor: "+err.Error())
	}
}

const (
	// socketTimeout bounds how long a gateway in this process takes to open its
	// socket.
	socketTimeout = 30 * time.Second
	// reloadTimeout bounds how long a running gateway takes to apply a changed
	// file.
	reloadTimeout = 30 * time.Second
	// statePoll is the interval for polling the state of a connecting server.
	statePoll = 50 * time.Millisecond
)

// AwaitServer waits until the running gateway has a server that was just added
// to the file, and returns the gateway. It returns nil if the gateway has
// stopped or does not have the server within reloadTimeout. The gateway moves
// from the socket of before to that of cfg.
func (l *Launcher) AwaitServer(ctx context.Context, before, cfg *config.Config, name string) *Gateway {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	for {
		left := l.Running(ctx, before) == nil // if it moved, its new socket is open by now
		running := l.Running(ctx, cfg)
		if running != nil {
			g := l.Attach(running)
			if g.has(ctx, name) {
				return g
			}
		} else if left {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// has reports whether the gateway has a server. It reads the list, because the
// gateway logs and counts a request for a server that does not exist as
// rejected.
func (g *Gateway) has(ctx context.Context, name string) bool {
	var list struct{ Servers []control.Server }
	err := g.Get(ctx, "/api/servers", nil, &list)
	return err == nil && slices.ContainsFunc(list.Servers, func(s control.Server) bool { return s.Name == name })
}

func (g *Gateway) server(ctx context.Context, name string) (s control.Server, err error) {
	err = g.Get(ctx, "/api/servers/"+url.PathEscape(name), nil, &s)
	return s, err
}

// AwaitConnection waits until the first attempt to connect to a server has
// succeeded or failed, and returns the server's state.
func (g *Gateway) AwaitConnection(ctx context.Context, name string) (control.Server, error) {
	if _, ok := g.launcher.Width(g.launcher.Err); !ok {
		g.launcher.Note("Connecting to %q …", name)
	}
	defer g.ShowConnecting(ctx)()
	for began := time.Now(); ; {
		s, err := g.server(ctx, name)
		switch {
		case err != nil || s.State == upstream.Connected:
			return s, err
		case s.State != upstream.Connecting:
			g.rememberFailure(ctx, name, s.Reason, time.Since(began))
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(statePoll):
		}
	}
}

// ShowConnecting shows on a terminal which servers, or which of the named ones,
// are still starting, until stop is called.
func (g *Gateway) ShowConnecting(ctx context.Context, only ...string) (stop func()) {
	l := g.launcher
	if _, ok := l.Width(l.Err); !ok || l.Quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		shown := false
		for frame := 0; ; frame++ {
			select {
			case <-ctx.Done():
				if shown {
					fmt.Fprint(l.Err, "\r\x1b[K")
				}
				return
			case <-time.After(150 * time.Millisecond):
			}
			var status app.Status
			if g.Get(ctx, "/api/status", nil, &status) != nil {
				continue
			}
			var pending []string
			for _, s := range status.Servers {
				if s.Status == upstream.Connecting && (len(only) == 0 || slices.Contains(only, s.Name)) {
					pending = append(pending, strings.TrimSpace(s.Name+" "+s.Reason))
				}
			}
			if len(pending) > 0 {
				shown = true
				bar := strings.Repeat("━", 20*(len(status.Servers)-len(pending))/len(status.Servers))
				fmt.Fprintf(l.Err, "\r\x1b[K%c %s%s connecting: %s", `|/-\`[frame%4], bar, strings.Repeat("╌", 20-len([]rune(bar))), terminal.Clip(strings.Join(pending, ", "), 40))
			}
		}
	}()
	return func() { cancel(); <-done }
}
