package attach

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

func ctxFor(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// folder returns a private folder with a short path: paths of test folders are
// too long for sockets on some systems.
func folder(t testing.TB) string {
	dir, err := os.MkdirTemp("", "j")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// running starts a gateway on a socket. Its streams echo in upper case.
func running(t testing.TB, open Opener) (path string, stop func()) {
	path = filepath.Join(folder(t), "s.sock")
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if open == nil {
		open = func(_ context.Context, w StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
			switch w.Server {
			case "none":
				return nil, &tool.Error{Kind: tool.ServerNotFound, Msg: "no such server", Err: errors.New("secret")}
			case "odd":
				return nil, errors.New("odd")
			}
			return func(ctx context.Context, r io.Reader, out io.Writer) error {
				fmt.Fprintf(out, "mode %s\n", w.Mode)
				b, err := io.ReadAll(r)
				if err != nil {
					return err
				}
				_, err = io.WriteString(out, strings.ToUpper(string(b)))
				return err
			}, nil
		}
	}
	s := New(Options{
		HTTP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := tool.WithCaller(r.Context(), tool.Local) // like the gateway's handler for the socket
			fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, tool.CallerFrom(ctx).ID)
		}),
		Open: open, Version: "1", Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve = %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("Serve goes on")
		}
	})
	t.Cleanup(stop)
	return path, stop
}

// Stream relays in and out over one connection to a gateway.
func Stream(ctx context.Context, path string, w StreamRequest, in io.Reader, out io.Writer) error {
	c, err := Open(ctx, path, w)
	if err != nil {
		return err
	}
	return (&Relay{Reconnect: func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("the gateway has ended") }}).Run(ctx, c, in, out)
}

// oneGateway is a gateway on a socket that responds to every request with its
// own name, holds back the response to "hold", and can be stopped.
func oneGateway(t *testing.T, path, name string) (seen func() []string, stop func()) {
	t.Helper()
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []string
	s := New(Options{HTTP: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler), Open: func(context.Context, StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
		return func(ctx context.Context, r io.Reader, w io.Writer) error {
			stop := context.AfterFunc(ctx, func() { w.(io.Closer).Close() })
			defer stop()
			lines := bufio.NewScanner(r)
			for lines.Scan() {
				m, err := mcp.Decode([]byte(lines.Text()), mcp.Limits{})
				mu.Lock()
				all = append(all, m.Method)
				mu.Unlock()
				if err == nil && m.IsRequest() && m.Method != "hold" {
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"by":%q}}`+"\n", m.ID, name)
				}
			}
			return nil
		}, nil
	}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = s.Serve(ctx, ln); close(done) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}, stop
}
