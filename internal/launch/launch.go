// Package launch finds the running gateway of a configuration on this machine,
// or runs one in this process if there is none.
//
// Commands use either in the same way, through [Gateway]. A gateway is found by
// its socket, whose name depends on the configuration file and on the values of
// the variables that the file uses ([Launcher.Socket]). Start reading at
// [Launcher.Find] and [Launcher.Start]; [Launcher.ServeMCP] serves an agent
// with a gateway that other agents can share.
package launch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"junctor/internal/app"
	"junctor/internal/auth"
	"junctor/internal/config"
	"junctor/internal/secretkey"
	"junctor/internal/telemetry"
	"junctor/internal/terminal"
)

// Launcher finds and runs gateways. Its fields are the parts of the program's
// environment that this needs.
type Launcher struct {
	terminal.Terminal
	Environ  []string
	Lookup   func(string) (string, bool) // of environment variables
	DataDir  string
	Version  string
	LogLevel string // from the command line; "" for the configured one

	// LogBuffer buffers log lines before they are written to Err; nil for none.
	LogBuffer atomic.Pointer[telemetry.LineBuffer]
}

// Build returns a gateway for the configuration. It logs at level, or at the
// configured level if level is "" or LogLevel is set. set, which may be nil,
// changes the options.
func (l *Launcher) Build(ctx context.Context, cfg *config.Config, reload config.Options, level telemetry.Level, set func(*app.Options)) (*app.App, error) {
	redactor, err := telemetry.NewRedactor(cfg.Security.RedactConfig)
	if err != nil {
		return nil, err
	}
	if l.LogLevel != "" || level == "" {
		level = cfg.Log.Level
	}
	var leveler slog.LevelVar
	leveler.Set(level.Slog())
	recent := telemetry.NewRing[telemetry.LogEntry](1000)
	_, isTerminal := l.Width(l.Err)
	buffer := telemetry.NewLineBuffer(l.Err)
	if isTerminal {
		_ = buffer.Unbuffer() // cannot fail: nothing is buffered yet
	}
	l.LogBuffer.Store(buffer)
	admin, _ := cfg.Lookup("JUNCTOR_ADMIN_KEY")
	if err := auth.CheckKey(telemetry.Secret(admin)); admin != "" && err != nil {
		return nil, fmt.Errorf("JUNCTOR_ADMIN_KEY %w; make one with: openssl rand -hex 24", err)
	}
	key, _ := cfg.Lookup("JUNCTOR_SECRET_KEY")
	if _, err := secretkey.Parse(telemetry.Secret(key)); key != "" && err != nil {
		return nil, err
	}
	o := app.Options{
		Config: cfg, Reload: reload, Version: l.Version, DataDir: l.DataDir, Environ: withoutOwnKeys(l.Environ),
		AdminKey: telemetry.Secret(admin), SecretKey: telemetry.Secret(key), Socket: l.Socket,
		Log: telemetry.NewLogger(telemetry.LogOptions{
			Output: buffer, Terminal: isTerminal, Colour: isTerminal && !l.NoColour, Format: cfg.Log.Format,
			Level: &leveler, Redactor: redactor, Recent: recent,
		}),
		Level: &leveler, Recent: recent, Redactor: redactor,
	}
	if set != nil {
		set(&o)
	}
	return app.Open(ctx, o)
}

// WithoutServers makes [Launcher.Build] return a gateway that starts no
// servers.
func WithoutServers(o *app.Options) { o.Only = []string{} }

// withoutOwnKeys removes Junctor's own keys from the environment that the
// programs of servers may inherit.
func withoutOwnKeys(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return name == "JUNCTOR_SECRET_KEY" || name == "JUNCTOR_ADMIN_KEY"
	})
}
