package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"junctor/internal/child"
	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// failure is why an upstream is not connected, in a form that may be shown.
type failure tool.Error

func (f *failure) message() string {
	if f == nil {
		return ""
	}
	return f.Msg
}

func (f *failure) kind() tool.Kind {
	if f == nil {
		return ""
	}
	return f.Kind
}

// handshakeError is an error during connecting, with the connection's details.
type handshakeError struct {
	err  error
	conn *conn // of a child process; nil for others
}

func (e *handshakeError) Error() string { return e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// explain returns why an upstream is down and what to do about it.
func explain(cfg Config, err error) *failure {
	f := &failure{Kind: tool.UpstreamFailed, Err: err}
	if start, ok := errors.AsType[*child.StartError](err); ok {
		f.Msg = start.Error()
		return f
	}
	h, connecting := errors.AsType[*handshakeError](err)
	if connecting && h.conn != nil && !isTimeout(err) {
		if exit := h.conn.exited(context.Background(), exitWait); exit != nil && isConnectionClosed(err) {
			f.Msg = fmt.Sprintf("its program %s before it answered the handshake; its last lines on stderr may say why, or start it in a terminal", exit)
			f.Msg += h.conn.strayHint()
			return f
		}
	}
	if exit, ok := errors.AsType[*child.ExitError](err); ok {
		f.Msg = "its program " + exit.Error()
		return f
	}
	if connecting && isTimeout(err) {
		f.Kind = tool.Timeout
		f.Msg = fmt.Sprintf("it did not answer the handshake within %s; raise startTimeoutMs if it needs longer", cfg.StartTimeoutMs.Duration())
		if h.conn != nil {
			f.Msg += "; if the program is still being downloaded, a later attempt can succeed"
			f.Msg += h.conn.strayHint()
		}
		return f
	}
	if refused, ok := errors.AsType[*mcp.Error](err); ok {
		f.Msg = fmt.Sprintf("it refused the handshake: %s", tool.Shorten(refused.Message, 200))
		return f
	}
	if cfg.remote() {
		if msg := unreachable(cfg, err); msg != "" {
			f.Msg = msg
			return f
		}
	}
	if known, ok := errors.AsType[*tool.Error](err); ok {
		f.Kind, f.Msg, f.Details, f.RetryAfter = known.Kind, known.Msg, known.Details, known.RetryAfter
		return f
	}
	f.Msg = "the connection failed; the log has the cause"
	return f
}

// unsetVariables is the reason why a server without its variables is down.
func unsetVariables(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("environment variable %s is not set; export it or put it into .env next to the configuration file", names[0])
	}
	return fmt.Sprintf("environment variables %s are not set; export them or put them into .env next to the configuration file", strings.Join(names, ", "))
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || tool.KindOf(err) == tool.Timeout
}

// isConnectionClosed reports whether the server closed the connection.
func isConnectionClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) || errors.Is(err, mcp.ErrClosed)
}

// unreachable returns why there was no HTTP response; "" if there was another
// cause.
func unreachable(cfg Config, err error) string {
	host := cfg.URL
	if u, parseErr := url.Parse(cfg.URL); parseErr == nil {
		host = u.Host
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("the host name %q cannot be resolved; check url and the network", dns.Name)
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at %s (connection refused); start the server or correct url", host)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Sprintf("there is no route to %s; check url and the network", host)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("%s closed the connection before it answered", host)
	}
	var record tls.RecordHeaderError
	if errors.As(err, &record) {
		return fmt.Sprintf("%s does not speak TLS; use http:// instead of https:// if that is intended", host)
	}
	var (
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		name    x509.HostnameError
	)
	if errors.As(err, &unknown) || errors.As(err, &invalid) || errors.As(err, &name) {
		return fmt.Sprintf("the certificate of %s is not trusted; install its authority's certificate (SSL_CERT_FILE) or correct url", host)
	}
	return ""
}

// unavailable is the error of a call that finds its upstream down.
func unavailable(server string, since, next time.Time, f *failure) error {
	e := tool.Error(*f)
	now := time.Now()
	if e.Kind == tool.UpstreamAuthRequired {
		e.Msg = fmt.Sprintf("%s: %s", server, f.Msg)
	} else {
		e.Kind = tool.UpstreamFailed
		e.Msg = fmt.Sprintf("%s has been down since %s (%s): %s", server, since.UTC().Format("2006-01-02 15:04:05 MST"), formatAge(now.Sub(since)), f.Msg)
		e.Details = map[string]any{"server": server, "status": Disconnected, "since": since.UTC(), "reason": f.Msg}
	}
	if e.RetryAfter == 0 && next.After(now) {
		e.RetryAfter = next.Sub(now)
	}
	e.Err = downError{f.Err}
	return &e
}

// downError is the cause of the error of a call that finds its upstream down. It
// has [tool.ErrDown] in its chain and prints why the upstream is down.
type downError struct{ why error } // why may be nil

func (e downError) Error() string {
	if e.why == nil {
		return tool.ErrDown.Error()
	}
	return e.why.Error()
}

func (e downError) Unwrap() []error { return []error{tool.ErrDown, e.why} }

// formatAge formats a duration for messages.
func formatAge(d time.Duration) string {
	switch {
	case d < time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}

// callError adds the server's name to the error of a call that reached it. The
// server's own errors stay unchanged.
func (u *upstream) callError(ctx context.Context, c *conn, err error) error {
	if _, answered := errors.AsType[*mcp.Error](err); answered {
		return err
	}
	known, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("the connection to %s failed during the call", u.name), Err: err}
	}
	e := *known
	e.Err = err
	if lost := c.client.Err(); e.Kind == tool.UpstreamFailed && lost != nil && c.process != nil {
		wait := exitWaitCall
		if isConnectionClosed(lost) && !errors.Is(lost, mcp.ErrClosed) { // the program is about to exit
			wait = exitWait
		}
		if exit := c.exited(ctx, wait); exit != nil {
			e.Msg = fmt.Sprintf("%s ended during the call: its program %s", u.name, exit)
			return &e
		}
	}
	e.Msg = fmt.Sprintf("%s: %s", u.name, known.Msg)
	return &e
}
