package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/launch"
	"junctor/internal/oauth"
	"junctor/internal/telemetry"
	"junctor/internal/terminal"
	"junctor/internal/tool"
)

// withLogins calls f with the OAuth service of the configured store. A running
// gateway uses the same store and notices a new login. The context of f has the
// named caller, or tool.Local if caller is empty.
func (c *cli) withLogins(ctx context.Context, server, caller string, f func(context.Context, *oauth.Service) error) error {
	o := c.options(useWorkDir)
	cfg, err := c.load(o)
	if err != nil {
		return err
	}
	a, err := c.Build(ctx, cfg, o, telemetry.LevelError, launch.WithoutServers)
	if err != nil {
		return err
	}
	defer a.Close()
	logins := a.Logins()
	defer logins.Close()
	who := tool.Local
	if caller != "" {
		if err := logins.HasCallerLogins(server); err != nil {
			return errorWithCause(err)
		}
		if who, err = a.CallerNamed(ctx, caller); err != nil {
			return err
		}
	}
	return f(tool.WithCaller(ctx, who), logins)
}

// onBehalfOf returns the suffix of a message about the login of a caller.
func onBehalfOf(caller string) string {
	if caller == "" {
		return ""
	}
	return " on behalf of " + caller
}

// callerFlag adds the flag that specifies whose login is meant.
func callerFlag(cmd *cobra.Command, caller *string) {
	cmd.Flags().StringVar(caller, "caller", "", "the key (by name) or person (by ID) whose login it is, for a server with oauth.per \"caller\" (default: this machine's user)")
}

func (c *cli) serversLogin() *cobra.Command {
	var (
		noBrowser bool
		timeout   time.Duration
		caller    string
	)
	cmd := &cobra.Command{
		Use: "login NAME", Short: "Sign in to a server", Args: oneArg,
		Long: `Sign in to a server that requires OAuth. Your browser opens the server's own
sign-in page, which redirects back to this command. The tokens are stored
encrypted and refreshed automatically. A running gateway uses them within seconds.

Where each caller has a login of its own (oauth.per "caller"), --caller says whose
login it is.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			name := args[0]
			err := c.withLogins(ctx, name, caller, func(ctx context.Context, logins *oauth.Service) error {
				return logins.Login(ctx, name, func(address string) {
					c.showLogin(ctx, logins, name+onBehalfOf(caller), address, noBrowser)
				})
			})
			if err != nil {
				return errorWithCause(err)
			}
			c.Note("Signed in to %s%s.", name, onBehalfOf(caller))
			return nil
		},
	}
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "print the URL instead of opening a browser")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait for the sign-in")
	callerFlag(cmd, &caller)
	return cmd
}

// errorWithCause returns an error whose message includes that of its cause.
// Other callers must not see the cause, but here the user is the operator.
func errorWithCause(err error) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return err
	}
	if e.Err == nil || errors.Is(e.Err, context.DeadlineExceeded) {
		return errors.New(terminal.OneLine(e.Msg))
	}
	return errors.New(terminal.OneLine(e.Error()))
}

// showLogin prints the address of the sign-in page and opens it in the browser
// if possible. A user whose browser is on another machine pastes the URL to
// which the browser was redirected, which contains the authorization response.
func (c *cli) showLogin(ctx context.Context, logins *oauth.Service, name, address string, noBrowser bool) {
	opened := !noBrowser && c.openBrowser(ctx, address)
	if opened {
		c.Note("Opening the sign-in page of %s in your browser. If nothing opens, use this URL:", name)
	} else {
		c.Note("To sign in to %s, open this URL:", name)
	}
	fmt.Fprintf(c.Err, "\n  %s\n\n", terminal.OneLine(address))
	if !c.IsInput {
		return
	}
	c.Note("Waiting. If the browser is on another machine, paste the final URL here.")
	go func() {
		for lines := bufio.NewScanner(c.In); lines.Scan() && ctx.Err() == nil; {
			u, err := url.Parse(strings.TrimSpace(lines.Text()))
			if err != nil || u.Query().Get("state") == "" {
				c.Note("Not the expected URL: it begins with http and contains state=.")
				continue
			}
			if _, err := logins.Complete(ctx, u.Query()); err == nil {
				return
			}
		}
	}()
}

// openBrowser opens an address in the browser and reports whether that was
// possible. The environment variable BROWSER overrides the program, as is usual
// on Unix.
func (c *cli) openBrowser(ctx context.Context, address string) bool {
	var args []string
	set := func(name string) bool { v, _ := c.Lookup(name); return v != "" }
	switch browser, _ := c.Lookup("BROWSER"); {
	case browser != "":
		args = append(strings.Fields(browser), address)
	case runtime.GOOS == "darwin":
		args = []string{"open", address}
	case runtime.GOOS == "windows":
		args = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	case set("DISPLAY") || set("WAYLAND_DISPLAY"):
		args = []string{"xdg-open", address}
	default:
		return false
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...)
	if cmd.Start() != nil {
		return false
	}
	go func() { _ = cmd.Wait() }() // the exit status of a browser does not matter
	return true
}

func (c *cli) serversLogout() *cobra.Command {
	var caller string
	cmd := &cobra.Command{
		Use: "logout NAME", Short: "Sign out of a server and revoke its tokens", Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withLogins(cmd.Context(), args[0], caller, func(ctx context.Context, logins *oauth.Service) error {
				was, err := logins.End(ctx, args[0])
				switch {
				case !was && err != nil:
					return errorWithCause(err)
				case !was:
					if caller != "" {
						return fmt.Errorf("%q is not signed in to %q", caller, args[0])
					}
					return fmt.Errorf("not signed in to %q (see junctor servers list)", args[0])
				case err != nil:
					c.Note("note: %s", errorWithCause(err))
				}
				c.Note("Signed out of %s%s.", args[0], onBehalfOf(caller))
				return nil
			})
		},
	}
	callerFlag(cmd, &caller)
	return cmd
}
