package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"junctor/internal/attach"
	"junctor/internal/config"
)

// When a changed configuration has another socket name, the gateway moves
// there and closes the streams at the old socket, whose programs may use other
// accounts.
func TestSharingFollowsTheConfiguration(t *testing.T) {
	dir, err := os.MkdirTemp("", "j") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := func(cfg *config.Config) string {
		return filepath.Join(dir, fmt.Sprintf("%d.sock", len(cfg.ToolRules)))
	}
	one, two := filepath.Join(dir, "0.sock"), filepath.Join(dir, "1.sock")
	r := start(t, `{}`, t.TempDir(), func(o *Options) { o.Socket = socket })
	var conn *attach.Conn
	open := func(path string) func() bool {
		return func() bool {
			c, err := attach.Open(t.Context(), path, attach.StreamRequest{})
			if err == nil {
				t.Cleanup(func() { c.Close() })
				conn = c
			}
			return err == nil
		}
	}
	if !open(one)() {
		t.Error("the gateway says that it is ready and has no socket")
	}
	for _, step := range []struct{ cfg, now, before string }{
		{`{"toolRules":[{"pattern":"x:y","enabled":false}]}`, two, one},
		{`{}`, one, two},
	} {
		old := conn
		r.write(step.cfg)
		eventually(t, "it has moved to "+step.now, open(step.now))
		if _, err := io.ReadAll(old); err != nil {
			t.Errorf("the old stream ends with %v", err)
		}
		if _, err := os.Lstat(step.before); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", step.before, err)
		}
	}
	r.stop()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A permanent gateway takes over the socket of a temporary one, and waits for
// one that does not yield.
func TestServingGatewayTakesTheSocket(t *testing.T) {
	for name, yields := range map[string]bool{"temporary": true, "another that serves": false} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "j") // short enough for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			path := filepath.Join(dir, "0.sock")
			ln, err := attach.Listen(path)
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			o := attach.Options{Temporary: yields, Log: slog.New(slog.DiscardHandler), HTTP: http.NotFoundHandler(),
				Open: func(context.Context, attach.StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
					return func(ctx context.Context, _ io.Reader, _ io.Writer) error { <-ctx.Done(); return nil }, nil
				}}
			if yields {
				o.Yield = leave
			}
			left := make(chan error, 1)
			go func() { left <- attach.New(o).Serve(ctx, ln) }()
			conn, err := attach.Open(t.Context(), path, attach.StreamRequest{})
			if err != nil || conn.Temporary != yields {
				t.Fatalf("temporary %v, %v", conn.Temporary, err)
			}
			defer conn.Close()
			start(t, `{}`, t.TempDir(), func(o *Options) { o.Socket = func(*config.Config) string { return path } })
			if !yields {
				var refused *attach.Refused
				if err := attach.Yield(t.Context(), path); !errors.As(err, &refused) {
					t.Errorf("asked to yield: %v", err)
				}
				leave()
			}
			if err := <-left; err != nil {
				t.Error(err)
			}
			if _, err := io.ReadAll(conn); err != nil {
				t.Errorf("the stream ends with %v", err)
			}
			eventually(t, "the other has the socket", func() bool {
				c, err := attach.Open(t.Context(), path, attach.StreamRequest{})
				if err == nil {
					c.Close()
				}
				return err == nil
			})
		})
	}
}
