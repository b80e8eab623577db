package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"junctor/internal/agentify"
	"junctor/internal/auth"
	"junctor/internal/config"
	"junctor/internal/httpserver"
	"junctor/internal/llm"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// newAgentify creates the API that turns tasks in plain language into calls.
// configure handles the initialization options of a client that started the
// gateway for its own use.
func (a *App) newAgentify(configure func(context.Context, json.RawMessage) error) *agentify.Face {
	return agentify.New(agentify.Options{
		Tools: a.tools, Calls: a.executor, Upstreams: a.upstreams,
		Model: a.planner, Configure: configure, Trace: a.trace, Meter: a.metrics,
		Version: a.opts.Version, Log: a.log, Redact: a.opts.Redactor.String,
	})
}

func (a *App) debug() *agentify.Debug {
	return &agentify.Debug{Trace: a.trace, Logs: a.opts.Recent, Tools: a.tools}
}

// planner returns the model that plans tasks: the first configured one,
// otherwise OpenAI's, otherwise any. If there is none, it probes for a local
// one, because a person waits for the result.
func (a *App) planner() llm.Model {
	cfg := a.config.Load()
	if len(a.models.set().All()) == 0 {
		a.models.choose(context.Background(), cfg, true)
	}
	set := a.models.set()
	if len(cfg.LLM) == 0 {
		for _, m := range set.All() {
			if m.Info().Provider == llm.OpenAI {
				return m
			}
		}
	}
	return set.Get("")
}

// ServeAgentify serves one editor on a pair of byte streams until it
// disconnects or ctx is done. Run must be running.
func (a *App) ServeAgentify(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	port := &debugPort{app: a, ctx: ctx}
	defer port.close()
	defer stop()
	a.debugPort.Store(port) // apply reopens it when the setting changes
	defer a.debugPort.Store(nil)
	face := a.newAgentify(a.configure)
	defer face.Close()
	port.open(a.config.Load().DebugPort)
	// Only the stream gets the local user: the debug port uses ctx, too.
	return face.ServeStream(tool.WithCaller(ctx, tool.Local), in, out)
}

// configure merges a client's options into the configuration and applies the
// result. It does not wait for servers.
func (a *App) configure(ctx context.Context, raw json.RawMessage) error {
	options, notes, err := config.ParseOptions(raw, a.opts.Reload)
	var problems []config.Problem
	if e, ok := errors.AsType[*config.Error](err); ok {
		problems = e.Problems
	} else if err != nil {
		return err
	}
	var given struct{ Backends *[]json.RawMessage }
	if json.Unmarshal(raw, &given) == nil && given.Backends != nil && len(*given.Backends) == 0 && len(a.opts.Config.Servers) == 0 {
		problems = append(problems, config.Problem{Key: "backends", Msg: "is empty; name at least one backend, or leave it out"})
	}
	if len(problems) > 0 {
		return invalidOptions(problems)
	}
	for _, n := range notes {
		a.log.WarnContext(ctx, "initializationOptions", "note", n.String())
	}
	joined := a.opts.Config.Join(options)
	a.apply(ctx, joined)
	if a.opts.Level != nil && options.Sets("log.level") {
		a.opts.Level.Set(joined.Log.Level.Slog())
	}
	return nil
}

// invalidOptions returns an error that lists all violations.
func invalidOptions(problems []config.Problem) error {
	type violation struct {
		Path    string `json:"path"`
		Message string `json:"message"`
	}
	msg := "initializationOptions are not valid"
	var all []violation
	for i, p := range problems {
		all = append(all, violation{p.Key, p.Msg})
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		if p.Key != "" {
			separator += p.Key + " "
		}
		msg += separator + p.Msg
	}
	return &tool.Error{Kind: tool.InvalidArguments, Msg: msg, Details: map[string]any{"violations": all}}
}

// debugPort serves the page and the debug interface on loopback while an
// editor is served on stdio. A failure to open the port is only logged.
type debugPort struct {
	app *App
	ctx context.Context

	mu     sync.Mutex
	port   int
	stop   func() // stops serving on port; nil if port is 0
	closed bool
	wg     sync.WaitGroup
}

// open serves on the port instead of the current one; 0 closes the interface.
func (d *debugPort) open(port int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || port == d.port {
		return
	}
	a := d.app
	if port == 0 {
		d.stop()
		d.port, d.stop = 0, nil
		a.log.InfoContext(d.ctx, "debug interface closed")
		return
	}
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		a.log.WarnContext(d.ctx, "cannot start the debug interface on this port; choose another with DEBUG_PORT", "port", port, "err", err)
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	gate, err := a.newGate(ctx, ln.Addr().String())
	if err != nil {
		cancel()
		_ = ln.Close()
		a.log.WarnContext(d.ctx, "cannot start the debug interface", "err", err)
		return
	}
	if d.stop != nil {
		d.stop()
	}
	server := httpserver.New(a.wrap(gate.Wrap(httpserver.WithClientIP(a.mount(gate)))), a.log)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	d.port, d.stop = port, func() {
		_ = server.Close()
		cancel()
		a.gates.remove(gate)
	}
	d.wg.Go(func() { _ = gate.Run(ctx) }) // never fails
	d.wg.Go(func() {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			a.log.WarnContext(d.ctx, "debug interface stopped", "err", err)
		}
	})
	a.log.InfoContext(d.ctx, "debug interface", "url", "http://"+ln.Addr().String())
}

// close stops the server and waits until it has stopped.
func (d *debugPort) close() {
	d.mu.Lock()
	d.closed = true
	if d.stop != nil {
		d.stop()
	}
	d.mu.Unlock()
	d.wg.Wait()
}

// newGate returns the authentication gate of the HTTP APIs on addr.
func (a *App) newGate(ctx context.Context, addr string) (*auth.Gate, error) {
	cfg := a.config.Load()
	if err := auth.AdoptFileKeys(ctx, a.store, cfg.Auth, a.opts.AdminKey); err != nil {
		return nil, err
	}
	var token telemetry.Secret
	if auth.IsLoopback(addr) {
		var err error
		if token, err = auth.LocalToken(a.opts.DataDir); err != nil {
			a.log.WarnContext(ctx, "the page has no administrator's rights without an administrator's key", "err", err)
		}
		a.opts.Redactor.Add(token)
	}
	gate := auth.NewGate(auth.Options{
		Config: cfg.Auth, Listen: addr, Origins: cfg.CORS.Origins, Keys: a.store, Sessions: a.store, Changes: a.store,
		AdminKey: a.opts.AdminKey, LocalToken: token, Profiles: a.profiles, Log: a.log, Public: a.public, Audit: a.audit.Audit, BrowserURL: cfg.PublicURL,
		Tokens: a.authserver, PublicURL: a.issuer,
	})
	a.gates.add(gate)
	return gate, nil
}
