package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"junctor/internal/apiclient"
	"junctor/internal/app"
	"junctor/internal/attach"
	"junctor/internal/auth"
	"junctor/internal/config"
	"junctor/internal/telemetry"
	"junctor/internal/terminal"
	"junctor/internal/upstream"
)

// gateway is what commands talk to: the gateway that serves with the same
// configuration, or one of their own that lives as long as the command.
type gateway struct {
	apiclient.Client
	cli   *cli
	own   *app.App                // nil for one that was running already
	run   func(servers ...string) // starts the servers of one of their own, or these of them; until then it knows what was last seen
	close func()
}

// attached returns the gateway that is reached through client.
func (c *cli) attached(client *http.Client) *gateway {
	return &gateway{cli: c, Client: apiclient.Client{HTTP: client}, run: func(...string) {}, close: func() {}}
}

// open returns a gateway with the named upstreams, or with all, running.
func (c *cli) open(ctx context.Context, only ...string) (*gateway, error) {
	g, err := c.prepare(ctx, only...)
	if err == nil {
		g.run()
	}
	return g, err
}

// openWith is open with a configuration that was read already.
func (c *cli) openWith(ctx context.Context, cfg *config.Config, only ...string) (*gateway, error) {
	g, err := c.prepareWith(ctx, cfg, only...)
	if err == nil {
		g.run()
	}
	return g, err
}

// prepare is open without starting anything.
func (c *cli) prepare(ctx context.Context, only ...string) (*gateway, error) {
	cfg, err := c.load(c.options(hereToo))
	if err != nil {
		if path := c.findDespite(ctx, c.options(hereToo), err); path != "" {
			return c.attached(attach.Client(path)), nil
		}
		return nil, err
	}
	return c.prepareWith(ctx, cfg, only...)
}

func (c *cli) prepareWith(ctx context.Context, cfg *config.Config, only ...string) (*gateway, error) {
	if len(only) == 0 || only[0] == "" {
		only = nil
	}
	if running := c.running(ctx, cfg); running != nil {
		return c.attached(running), nil
	}
	for _, name := range only {
		if _, ok := cfg.Server(name); !ok && name != "junctor" {
			only = nil // let the gateway say what there is instead
			break
		}
	}
	var started []string // empty for all
	a, err := c.build(ctx, cfg, c.options(hereToo), telemetry.LevelError, func(o *app.Options) {
		o.Only, o.AwaitInstall = only, true
		o.Starts = func(server string) bool { return len(started) == 0 || slices.Contains(started, server) }
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	complain := func(err error) {
		if err != nil {
			fmt.Fprintln(c.Err, "junctor: "+err.Error())
		}
	}
	var once sync.Once
	return &gateway{
		cli: c, Client: apiclient.Client{HTTP: a.LocalClient()}, own: a,
		run: func(servers ...string) {
			once.Do(func() {
				started = servers
				running.Go(func() { complain(a.Run(ctx)) })
			})
		},
		close: func() {
			cancel()
			running.Wait()
			complain(a.Close())
		},
	}, nil
}

// socket is where a gateway of this process's configuration, with the values
// that its variables have here, is found by this user's other programs.
func (c *cli) socket(cfg *config.Config) string { return c.socketAt(cfg.Place(), cfg.Environment()) }

// socketAt is the socket of the gateway of a file. The data folder comes first:
// agents hand HOME on to the programs that they start, but not XDG_RUNTIME_DIR.
func (c *cli) socketAt(place config.Place, environment string) string {
	runtimeDir, _ := c.lookup("XDG_RUNTIME_DIR")
	file := place.Path
	if file == "" { // a gateway without a file will be found after the first one is written
		file = place.New
	}
	path, err := attach.Path(file, environment, c.dataDir, runtimeDir)
	if err != nil { // no folder will do; everything works without
		return ""
	}
	return path
}

// find returns the socket of the gateway to use: the one that serves with this
// configuration and these values. Where variables have no value here, as in the
// short environment in which agents start programs, it is the only gateway of
// the file. It is empty when there is none.
func (c *cli) find(ctx context.Context, cfg *config.Config) string {
	path := c.socket(cfg)
	if path == "" || listens(ctx, path) {
		return path
	}
	if !cfg.Incomplete() {
		return ""
	}
	others := slices.DeleteFunc(attach.Others(path), func(other string) bool { return !listens(ctx, other) })
	if len(others) != 1 {
		return ""
	}
	return others[0]
}

// findDespite returns the socket of the only gateway of a file that has become
// invalid since it was read, and tells the user what is wrong: the gateway goes
// on with the configuration that it has. It is empty when err is about something
// else.
func (c *cli) findDespite(ctx context.Context, o config.Options, err error) string {
	if _, usage := errors.AsType[usageError](err); usage {
		return ""
	}
	if _, broken := errors.AsType[*config.Error](err); !broken {
		return ""
	}
	own := c.socketAt(config.Locate(o), "")
	if own == "" {
		return ""
	}
	found := slices.DeleteFunc(append(attach.Others(own), own), func(path string) bool { return !listens(ctx, path) })
	if len(found) != 1 {
		return ""
	}
	c.Note("%v\nThe running gateway answers, with the configuration from before.", err)
	return found[0]
}

// listens reports whether a gateway listens at path, or something that it must
// not be mistaken for, of which using the socket tells more.
func listens(ctx context.Context, path string) bool {
	conn, err := attach.Dial(ctx, path)
	if err != nil {
		return !errors.Is(err, attach.ErrNone)
	}
	_ = conn.Close()
	return true
}

// running returns the way to the gateway that serves with this configuration,
// or nil.
func (c *cli) running(ctx context.Context, cfg *config.Config) *http.Client {
	if path := c.find(ctx, cfg); path != "" {
		return attach.Client(path)
	}
	return nil
}

// build makes a gateway of the configuration. level is what it logs unless
// someone asked for more or less; set, which may be nil, changes the options.
func (c *cli) build(ctx context.Context, cfg *config.Config, reload config.Options, level telemetry.Level, set func(*app.Options)) (*app.App, error) {
	redactor, err := telemetry.NewRedactor(cfg.Security.RedactConfig)
	if err != nil {
		return nil, err
	}
	if c.flags.logLevel != "" || level == "" {
		level = cfg.Log.Level
	}
	var leveler slog.LevelVar
	leveler.Set(level.Slog())
	recent := telemetry.NewRing[telemetry.LogEntry](1000)
	_, isTerminal := c.Width(c.Err)
	output := c.Err
	if !isTerminal {
		buffer := telemetry.NewLineBuffer(c.Err)
		c.log.Store(buffer)
		output = buffer
	}
	admin, _ := cfg.Lookup("JUNCTOR_ADMIN_KEY")
	if err := auth.CheckKey(telemetry.Secret(admin)); admin != "" && err != nil {
		return nil, fmt.Errorf("JUNCTOR_ADMIN_KEY %w; make one with: openssl rand -hex 24", err)
	}
	key, _ := cfg.Lookup("JUNCTOR_SECRET_KEY")
	o := app.Options{
		Config: cfg, Reload: reload, Version: buildVersion(), DataDir: c.dataDir, Environ: withoutOwnKeys(c.environ),
		AdminKey: telemetry.Secret(admin), SecretKey: telemetry.Secret(key), Socket: c.socket,
		Log: telemetry.NewLogger(telemetry.LogOptions{
			Output: output, Terminal: isTerminal, Colour: isTerminal && !c.NoColour, Format: cfg.Log.Format,
			Level: &leveler, Redactor: redactor, Recent: recent,
		}),
		Level: &leveler, Recent: recent, Redactor: redactor,
	}
	if set != nil {
		set(&o)
	}
	return app.Open(ctx, o)
}

// waiting shows on a terminal which servers, or which of those named, are still
// starting, until the function that it returns is called.
func (g *gateway) waiting(ctx context.Context, only ...string) (stop func()) {
	c := g.cli
	if _, ok := c.Width(c.Err); !ok || c.Quiet {
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
					fmt.Fprint(c.Err, "\r\x1b[K")
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
				fmt.Fprintf(c.Err, "\r\x1b[K%c %s%s connecting: %s", `|/-\`[frame%4], bar, strings.Repeat("╌", 20-len([]rune(bar))), terminal.Clip(strings.Join(pending, ", "), 40))
			}
		}
	}()
	return func() { cancel(); <-done }
}

// withoutOwnKeys leaves Junctor's own keys out of what programs of servers may
// inherit, even where they inherit everything.
func withoutOwnKeys(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return name == "JUNCTOR_SECRET_KEY" || name == "JUNCTOR_ADMIN_KEY"
	})
}

// withoutServers builds a gateway that starts no server.
func withoutServers(o *app.Options) { o.Only = []string{} }
