// Command junctor joins any AI to any MCP server.
//
// Only this package reads flags, the environment, signals and the terminal, and
// converts errors into messages and exit codes. Everything else is in the
// packages under internal.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"junctor/internal/config"
	"junctor/internal/launch"
	"junctor/internal/telemetry"
	"junctor/internal/terminal"
)

// version is stamped at build time.
var version = "dev"

func main() { os.Exit(run(os.Args[1:], osEnvironment())) }

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// environment is the environment of the program, which tests replace.
type environment struct {
	launch.Launcher
	workDir string
	userDir string // the user's configuration folder
	home    string
}

func osEnvironment() *environment {
	w := &environment{Launcher: launch.Launcher{
		Terminal: terminal.Terminal{
			In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Width: terminal.Width, IsInput: term.IsTerminal(int(os.Stdin.Fd())),
		},
		Environ: os.Environ(), Lookup: os.LookupEnv,
	}}
	w.workDir, _ = os.Getwd()
	w.userDir, _ = os.UserConfigDir()
	w.home, _ = os.UserHomeDir()
	w.DataDir = config.DataDir(runtime.GOOS, w.Lookup, w.home)
	return w
}

// printLast prints the last line of the program. If the log has a buffer, it
// uses that, which does not wait indefinitely for a stderr that is not read.
func (w *environment) printLast(line string) {
	if b := w.LogBuffer.Load(); b != nil {
		_, _ = b.Write([]byte(line + "\n"))
		return
	}
	fmt.Fprintln(w.Err, line)
}

// silentError is an error that was already reported to the user.
type silentError struct{ error }

func run(args []string, w *environment) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, stopHangup := endOnHangup(ctx)
	defer stopHangup()
	go func() { // a second signal terminates the program immediately
		<-ctx.Done()
		stop()
		_ = w.LogBuffer.Load().Unbuffer()
	}()
	defer func() { _ = w.LogBuffer.Load().Unbuffer() }() // also after a panic
	root := rootCommand(w)
	root.SetArgs(args)
	root.SetIn(w.In)
	root.SetOut(w.Out)
	root.SetErr(w.Err)
	err := root.ExecuteContext(ctx)
	_ = w.LogBuffer.Load().Unbuffer() // before further output to the same stream
	if err == nil {
		return exitDone
	}
	if _, ok := errors.AsType[silentError](err); ok {
		return exitFailed
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		w.printLast("junctor: stopped")
		return exitFailed
	}
	w.printLast("junctor: " + terminal.Printable(err.Error())) // it may contain text from a server
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// endOnHangup returns a context that also ends on SIGHUP, which the system sends
// when the terminal is closed. If SIGHUP was ignored at the start (nohup), it
// remains ignored. Closing a terminal can send it several times, so unlike
// other signals a second one does not terminate the program.
func endOnHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if signal.Ignored(syscall.SIGHUP) {
		return ctx, cancel
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		select {
		case <-hangups:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(hangups)
		cancel()
	}
}

// outliveReaders makes writes to stdout and stderr fail once nothing reads them
// any more. By default they would end the program with SIGPIPE, and with it the
// calls of all clients.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// cli is the state that the commands share.
type cli struct {
	*environment
	configFile string // from the command line
}

func rootCommand(w *environment) *cobra.Command {
	c := &cli{environment: w}
	noColour, set := w.Lookup("NO_COLOR")
	w.NoColour = set && noColour != ""
	w.Version = buildVersion()
	root := &cobra.Command{
		Use:   "junctor",
		Short: "Join any AI to any MCP server",
		Long: `Junctor connects to many MCP servers and offers all their tools to agents, to
programs, to IDEs and to people.

Start it with "junctor serve" and open http://127.0.0.1:8787, or put
"junctor mcp" into your agent's configuration.`,
		Version:       buildVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			// cobra checks these too, but later and without calling
			// FlagErrorFunc.
			if err := cmp.Or(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
				return cmd.FlagErrorFunc()(cmd, err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetVersionTemplate("junctor {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	p := root.PersistentFlags()
	p.StringVar(&c.configFile, "config", "", "the configuration `file`")
	p.StringVar(&c.LogLevel, "log-level", "", "trace, debug, info, warn, error, fatal or silent")
	p.BoolVarP(&c.Quiet, "quiet", "q", false, "do not print progress and notes")
	_ = root.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(telemetry.Level("").Values(), cobra.ShellCompDirectiveNoFileComp))
	root.AddGroup(
		&cobra.Group{ID: "faces", Title: "Run:"},
		&cobra.Group{ID: "use", Title: "Use:"},
		&cobra.Group{ID: "manage", Title: "Manage:"},
	)
	for _, group := range []struct {
		id       string
		commands []*cobra.Command
	}{
		{"faces", c.faceCommands()},
		{"use", c.useCommands()},
		{"manage", c.manageCommands()},
	} {
		for _, sub := range group.commands {
			sub.GroupID = group.id
			root.AddCommand(sub)
		}
	}
	root.AddCommand(c.versionCommand())
	root.AddCommand(c.hiddenCommands()...)
	return root
}

// buildVersion returns the version stamped at build time, or the one from the
// Go build information if there is none.
func buildVersion() string {
	if version != "dev" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "dev-" + s.Value[:12]
			}
		}
	}
	return version
}
