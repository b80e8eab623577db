package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"junctor/internal/child"
	"junctor/internal/mcp"
	"junctor/internal/tool"
)

func TestExplain(t *testing.T) {
	remote := DefaultConfig()
	remote.URL = "https://mcp.example:8443/path?key=secret"
	for name, tt := range map[string]struct {
		cfg  Config
		err  error
		kind tool.Kind
		want string
	}{
		"exit":             {err: &child.ExitError{Code: 2}, want: "its program exited with code 2"},
		"start":            {err: &child.StartError{Command: "/home/me/x", Reason: "it is gone", Hint: "do this"}, want: `start "x": it is gone; do this`},
		"handshake error":  {err: &mcp.Error{Code: -32000, Message: "wrong client"}, want: "it refused the handshake: wrong client"},
		"timeout":          {err: &handshakeError{err: context.DeadlineExceeded}, kind: tool.Timeout, want: "did not answer the handshake within"},
		"known":            {cfg: remote, err: &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "log in"}, kind: tool.UpstreamAuthRequired, want: "log in"},
		"anything":         {err: errors.New("secret details"), want: "the connection failed"},
		"no route":         {cfg: remote, err: syscall.EHOSTUNREACH, want: "no route to mcp.example:8443"},
		"no network":       {cfg: remote, err: syscall.ENETUNREACH, want: "no route to mcp.example:8443"},
		"reset":            {cfg: remote, err: syscall.ECONNRESET, want: "mcp.example:8443 closed the connection before it answered"},
		"cut":              {cfg: remote, err: io.ErrUnexpectedEOF, want: "closed the connection"},
		"name":             {cfg: remote, err: &net.DNSError{Name: "mcp.example"}, want: `"mcp.example" cannot be resolved`},
		"authority":        {cfg: remote, err: x509.UnknownAuthorityError{}, want: "certificate of mcp.example:8443 is not trusted"},
		"wrong name":       {cfg: remote, err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}, want: "not trusted"},
		"expired":          {cfg: remote, err: x509.CertificateInvalidError{Reason: x509.Expired}, want: "not trusted"},
		"other remote one": {cfg: remote, err: errors.New("?"), want: "the connection failed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := explain(tt.cfg, tt.err)
			want := tt.kind
			if want == "" {
				want = tool.UpstreamFailed
			}
			if f.kind() != want || !strings.Contains(f.message(), tt.want) || strings.Contains(f.message(), "secret") || strings.Contains(f.message(), "/home") {
				t.Errorf("explain = %s %q, want %s %q", f.kind(), f.message(), want, tt.want)
			}
		})
	}
}

func TestAgeText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "just now", 59 * time.Second: "59 s", 90 * time.Second: "1 min", 3 * time.Hour: "3 h",
	} {
		if got := formatAge(d); got != want {
			t.Errorf("age(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestConnectionErrorsAffectAllCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"answered":  {&mcp.Error{Code: -1}, false},
		"too slow":  {&tool.Error{Kind: tool.Timeout}, false},
		"cut":       {&tool.Error{Kind: tool.UpstreamFailed}, true},
		"no rights": {&tool.Error{Kind: tool.UpstreamAuthRequired}, true},
	} {
		if got := connectionSuspect(tt.err); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A Supervisor works with empty Options.
func TestSupervisorOptionsAreOptional(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Name, cfg.Transport = "x", InProcess
	off := cfg
	off.Name, off.Enabled = "off", false
	s := NewSupervisor([]Config{cfg, off}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	if _, err := s.Do(ctx, "x", tool.Request{Method: "ping"}); !errors.Is(err, tool.ErrDown) {
		t.Errorf("Do: %v", err)
	}
	s.Apply(nil)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDownErrorNamesReasonOnce: the error of a call that finds its upstream down is
// one line and names the reason once.
func TestDownErrorNamesReasonOnce(t *testing.T) {
	cause := errors.New("it ended")
	for name, tt := range map[string]struct {
		cause error
		want  string
	}{
		"same as the reason": {cause, "it ended"},
		"with more detail":   {errors.New("exit status 3"), "it ended: exit status 3"},
		"none":               {nil, "it ended: upstream is down"},
	} {
		err := unavailable("x", time.Now(), time.Time{}, &failure{Msg: "it ended", Err: tt.cause})
		if _, reason, _ := strings.Cut(err.Error(), "): "); reason != tt.want || !errors.Is(err, tool.ErrDown) || tt.cause != nil && !errors.Is(err, tt.cause) {
			t.Errorf("%s: %q, want the reason %q", name, err, tt.want)
		}
	}
}
