package attach

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

func TestPath(t *testing.T) {
	dir := folder(t)
	file := filepath.Join(dir, "junctor.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(file, link); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("this user may not make links: ", err)
		}
		t.Fatal(err)
	}
	a, err := Path(file, "", dir)
	if err != nil || filepath.Dir(a) != dir {
		t.Fatal(a, err)
	}
	if b, _ := Path(link, "", dir); b != a {
		t.Errorf("one file has two sockets, %s and %s", a, b)
	}
	home := filepath.Join(dir, "home")
	if err := os.Symlink(dir, home); err != nil {
		t.Fatal(err)
	}
	before, _ := Path(filepath.Join(home, "new", "junctor.json"), "", dir)
	if err := os.Mkdir(filepath.Join(dir, "new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new", "junctor.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if after, _ := Path(filepath.Join(home, "new", "junctor.json"), "", dir); after != before {
		t.Errorf("a file has another socket once it is written, %s and %s", before, after)
	}
	if b, _ := Path("", "", dir); b == a {
		t.Error("no configuration has the socket of one")
	}
	if b, _ := Path(filepath.Join(dir, "other.json"), "", dir); b == a {
		t.Error("two files have one socket")
	}
	long := filepath.Join(dir, strings.Repeat("x", 100))
	if b, err := Path(file, "", "", long, dir); err != nil || filepath.Dir(b) != dir {
		t.Errorf("Path = %s, %v", b, err)
	}
	if _, err := Path(file, "", long); err == nil {
		t.Error("a path that is too long")
	}
}

func TestListenIsExclusiveAndPrivate(t *testing.T) {
	path := filepath.Join(folder(t), "run", "s.sock")
	if _, err := Dial(ctxFor(t), path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial = %v", err)
	}
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		for file, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, want %v", file, info.Mode().Perm(), want)
			}
		}
	}
	if _, err := Listen(path); !errors.Is(err, ErrRunning) {
		t.Errorf("a second Listen = %v", err)
	}
	ln.Close()
	if _, err := Dial(ctxFor(t), path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial after Close = %v", err)
	}
	// The socket of a killed gateway is replaced.
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	if _, err := Dial(ctxFor(t), path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial of a dead socket = %v", err)
	}
	ln, err = Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}

func TestFoldersWritableByOthersAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders of the profile are private there")
	}
	dir := filepath.Join(folder(t), "open")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.sock")
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Errorf("Listen = %v", err)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := Dial(ctxFor(t), path); err == nil || errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial = %v", err)
	}
	if _, err := Listen(filepath.Join(path, "x", "s.sock")); err == nil {
		t.Error("a socket below a socket")
	}
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

func TestStreamServesManyClients(t *testing.T) {
	path, _ := running(t, nil)
	var wg sync.WaitGroup
	for i := range 10 { // ten clients, one gateway
		wg.Go(func() {
			var out strings.Builder
			text := strings.Repeat(fmt.Sprintf("client %d\n", i), 5000)
			if err := Stream(ctxFor(t), path, StreamRequest{Mode: "direct"}, strings.NewReader(text), &out); err != nil {
				t.Errorf("Stream = %v", err)
			}
			if want := "mode direct\n" + strings.ToUpper(text); out.String() != want {
				t.Errorf("client %d got %d bytes, want %d", i, out.Len(), len(want))
			}
		})
	}
	wg.Wait()
	for server, want := range map[string]string{"none": "no such server", "odd": "odd"} {
		var out strings.Builder
		err := Stream(ctxFor(t), path, StreamRequest{Server: server}, strings.NewReader("x"), &out)
		if refused, ok := errors.AsType[*Refused](err); !ok || refused.Error() != want || out.Len() > 0 {
			t.Errorf("Stream(%s) = %v, %q", server, err, out.String())
		}
	}
}

func TestStreamEndsWithTheGateway(t *testing.T) {
	begun := make(chan struct{})
	path, stop := running(t, func(context.Context, StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
		return func(ctx context.Context, r io.Reader, _ io.Writer) error {
			close(begun)
			<-ctx.Done()
			return nil
		}, nil
	})
	in, feed := io.Pipe()
	defer feed.Close()
	done := make(chan error, 1)
	go func() { done <- Stream(context.Background(), path, StreamRequest{}, in, io.Discard) }()
	<-begun
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("Stream = %v", err)
	}
	if err := Stream(ctxFor(t), path, StreamRequest{}, in, io.Discard); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Stream to nobody = %v", err)
	}
}

// TestStreamsEndWhenIdle checks that a stopping gateway accepts no more
// connections and closes its streams when no call is in flight.
func TestStreamsEndWhenIdle(t *testing.T) {
	path := filepath.Join(folder(t), "s.sock")
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	begun, asked := make(chan context.Context, 1), make(chan struct{}, 1)
	var idle atomic.Bool
	s := New(Options{
		HTTP: http.NotFoundHandler(), Version: "1", Log: slog.New(slog.DiscardHandler),
		Drain: func(ctx context.Context) {
			AwaitIdle(ctx, func() bool {
				select {
				case asked <- struct{}{}:
				default:
				}
				return idle.Load()
			})
		},
		Open: func(context.Context, StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
			return func(ctx context.Context, _ io.Reader, _ io.Writer) error {
				begun <- ctx
				<-ctx.Done()
				return nil
			}, nil
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	in, feed := io.Pipe()
	defer feed.Close()
	ended := make(chan error, 1)
	go func() { ended <- Stream(context.Background(), path, StreamRequest{}, in, io.Discard) }()
	stream := <-begun
	cancel()
	<-asked
	if err := stream.Err(); err != nil {
		t.Errorf("the stream ended during a call: %v", err)
	}
	if err := Stream(ctxFor(t), path, StreamRequest{}, in, io.Discard); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a stream to a gateway that stops = %v", err)
	}
	idle.Store(true)
	if err := <-done; err != nil {
		t.Errorf("Serve = %v", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("Stream = %v", err)
	}
}

func TestStreamEndsWithItsContext(t *testing.T) {
	begun := make(chan struct{}, 1)
	path, _ := running(t, func(context.Context, StreamRequest) (func(context.Context, io.Reader, io.Writer) error, error) {
		return func(ctx context.Context, r io.Reader, _ io.Writer) error {
			begun <- struct{}{}
			_, err := io.ReadAll(r)
			return err
		}, nil
	})
	in, feed := io.Pipe()
	defer feed.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-begun; cancel() }()
	if err := Stream(ctx, path, StreamRequest{}, in, io.Discard); err != nil && !errors.Is(err, ErrNotRunning) {
		t.Errorf("Stream = %v", err)
	}
}

func TestHTTPOverSocket(t *testing.T) {
	path, stop := running(t, nil)
	c := Client(path)
	for range 3 {
		resp, err := c.Get("http://junctor/api/x")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != "GET /api/x local" {
			t.Errorf("got %s", b)
		}
	}
	stop()
	if _, err := c.Get("http://junctor/"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

func TestInvalidGreetingsAreRefused(t *testing.T) {
	path, _ := running(t, nil)
	for text, want := range map[string]string{
		"JUNCTOR/9 {}\n":      "speaks JUNCTOR/1",
		"JUNCTOR/1 {broken\n": "read the greeting",
		"JUNCTOR/1 " + strings.Repeat("x", 2*maxLine) + "\n": "too long",
	} {
		c, err := Dial(ctxFor(t), path)
		if err != nil {
			t.Fatal(err)
		}
		go io.WriteString(c, text)
		b, _ := io.ReadAll(c)
		c.Close()
		if !strings.Contains(string(b), want) {
			t.Errorf("%.20q is answered %q, want %q", text, b, want)
		}
	}
	c, err := Dial(ctxFor(t), path)
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("JUN"))
	c.Close() // its goroutine must end, too: running waits for it
}

// A gateway of an incompatible version is rejected.
func TestGatewayOfOtherVersionIsRefused(t *testing.T) {
	path := filepath.Join(folder(t), "s.sock")
	ln, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for _, answer := range []string{"what?\n", ""} {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = readLine(bufio.NewReader(c))
			io.WriteString(c, answer)
			c.Close()
		}
	}()
	if _, ok := errors.AsType[*Refused](Stream(ctxFor(t), path, StreamRequest{}, strings.NewReader(""), io.Discard)); !ok {
		t.Error("spoken to")
	}
	if err := Stream(ctxFor(t), path, StreamRequest{}, strings.NewReader(""), io.Discard); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Stream = %v", err)
	}
}

func TestListenErrorNamesPath(t *testing.T) {
	dir := folder(t)
	for name, in := range map[string]string{"lock": "s.sock.lock/x", "socket": "s.sock/x"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name, "s.sock")
			if err := os.MkdirAll(filepath.Join(dir, name, in), 0o700); err != nil {
				t.Fatal(err)
			}
			if ln, err := Listen(path); err == nil {
				ln.Close()
				t.Error("listens")
			}
		})
	}
	if _, err := Dial(ctxFor(t), filepath.Join(dir, "socket", "s.sock")); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial of a folder = %v", err)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if runtime.GOOS == "linux" && sameUser(a) {
		t.Error("a pipe has no user")
	}
}

// Connections that arrive while the server stops are closed.
func TestConnectionsDuringShutdownAreClosed(t *testing.T) {
	done := make(chan struct{})
	close(done)
	f := &connQueue{addr: &net.UnixAddr{Name: "x"}, conns: make(chan net.Conn), done: done}
	a, b := net.Pipe()
	defer b.Close()
	f.push(a)
	if _, err := a.Write([]byte("x")); err == nil {
		t.Error("the connection is still open")
	}
	if f.Addr().String() != "x" {
		t.Error("another address")
	}
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

// A client continues when its gateway is restarted.
func TestRelayReconnectsAfterGatewayRestart(t *testing.T) {
	path := filepath.Join(folder(t), "s.sock")
	seen1, stop1 := oneGateway(t, path, "first")
	conn, err := Open(ctxFor(t), path, StreamRequest{})
	if err != nil {
		t.Fatal(err)
	}
	restarted := make(chan struct{})
	relay := &Relay{Reconnect: func(ctx context.Context) (io.ReadWriteCloser, error) {
		<-restarted
		return Open(ctx, path, StreamRequest{})
	}}
	inR, in := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctxFor(t), conn, inR, outW) }()
	out := bufio.NewScanner(outR)
	ask := func(line, want string) {
		t.Helper()
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !out.Scan() || !strings.Contains(out.Text(), want) {
			t.Fatalf("%s is answered %q, want %s", line, out.Text(), want)
		}
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `"by":"first"`)
	io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	io.WriteString(in, `{"jsonrpc":"2.0","id":"held","method":"hold"}`+"\n")
	for ctx := ctxFor(t); !slices.Contains(seen1(), "hold"); {
		select {
		case <-ctx.Done():
			t.Fatal("the request never arrived")
		case <-time.After(time.Millisecond):
		}
	}
	stop1()
	if !out.Scan() || !strings.Contains(out.Text(), `"id":"held","error"`) || !strings.Contains(out.Text(), "UNAVAILABLE") {
		t.Fatalf("the request in flight: %s", out.Text())
	}
	seen2, _ := oneGateway(t, path, "second")
	close(restarted)
	if !out.Scan() || !strings.Contains(out.Text(), "tools/list_changed") {
		t.Fatalf("after the restart: %s", out.Text())
	}
	ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":2,"result":{"by":"second"}}`)
	if got := seen2(); !slices.Equal(got, []string{"initialize", "notifications/initialized", "tools/list"}) {
		t.Errorf("the second gateway saw %v", got)
	}
	in.Close()
	if err := <-done; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// A client whose initialize was not answered must start again.
func TestRelayFailsUnansweredInitialize(t *testing.T) {
	near, far := net.Pipe()
	near2, far2 := net.Pipe()
	relay := &Relay{Reconnect: func(context.Context) (io.ReadWriteCloser, error) { return near2, nil }}
	inR, in := io.Pipe()
	outR, outW := io.Pipe()
	go relay.Run(ctxFor(t), near, inR, outW)
	go io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`+"\n")
	if line, err := readLine(bufio.NewReader(far)); err != nil || !strings.Contains(string(line), "initialize") {
		t.Fatal(string(line), err)
	}
	far.Close()
	out := bufio.NewReader(outR)
	if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, `"id":1,"error"`) {
		t.Fatal(line, err)
	}
	go io.WriteString(in, "not a message\n")
	if line, err := readLine(bufio.NewReader(far2)); err != nil || string(line) != "not a message" {
		t.Fatal(string(line), err)
	}
	in.Close()
}

// The relay does not wait for a gateway once the client has disconnected.
func TestRelayEndsWhenClientCloses(t *testing.T) {
	near, far := net.Pipe()
	trying := make(chan struct{})
	relay := &Relay{Reconnect: func(ctx context.Context) (io.ReadWriteCloser, error) {
		close(trying)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	inR, in := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctxFor(t), near, inR, io.Discard) }()
	far.Close()
	<-trying
	in.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A canceled request gets no response when the gateway ends.
func TestRelayDropsCancelledRequests(t *testing.T) {
	near, far := net.Pipe()
	relay := &Relay{Reconnect: func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("no more") }}
	inR, in := io.Pipe()
	defer in.Close()
	var out strings.Builder
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctxFor(t), near, inR, &out) }()
	r := bufio.NewReader(far)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":2,"method":"b"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
	} {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := readLine(r); err != nil {
			t.Fatal(err)
		}
	}
	far.Close()
	<-done
	if got := out.String(); strings.Contains(got, `"id":1`) || !strings.Contains(got, `"id":2`) {
		t.Errorf("answered %s", got)
	}
}

// A client that stops reading ends the relay.
func TestRelayEndsWhenClientStopsReading(t *testing.T) {
	near, far := net.Pipe()
	outR, outW := io.Pipe()
	outR.Close()
	inR, in := io.Pipe()
	defer in.Close()
	done := make(chan error, 1)
	go func() { done <- (&Relay{}).Run(ctxFor(t), near, inR, outW) }()
	go io.WriteString(far, "{}\n")
	if err := <-done; err == nil || !strings.Contains(err.Error(), "write to the client") {
		t.Errorf("Run = %v", err)
	}
}

// Gateways with the same file and other variable values have separate sockets,
// which OtherSockets finds; sockets of killed gateways are removed.
func TestSocketsPerEnvironmentOfOneFile(t *testing.T) {
	dir := folder(t)
	file := filepath.Join(dir, "junctor.json")
	path := func(file, environment string) string {
		p, err := Path(file, environment, dir)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	plain, one, two, foreign := path(file, ""), path(file, "one"), path(file, "two"), path(filepath.Join(dir, "other.json"), "one")
	if plain == one || one == two || one == foreign || strings.Contains(one, "-one") {
		t.Errorf("%s %s %s %s", plain, one, two, foreign)
	}
	for _, p := range []string{two, foreign} { // left over from a killed gateway
		for _, name := range []string{p, p + ".lock"} {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var open []net.Listener
	for _, p := range []string{plain, one} {
		ln, err := Listen(p)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, ln)
	}
	if got := OtherSockets(two); !slices.Equal(got, []string{one, plain}) && !slices.Equal(got, []string{plain, one}) {
		t.Errorf("OtherSockets(%s) = %q", two, got)
	}
	if got := OtherSockets(one); !slices.Equal(got, []string{plain}) {
		t.Errorf("OtherSockets(%s) = %q", one, got)
	}
	if _, err := Dial(ctxFor(t), plain); err != nil {
		t.Errorf("a gateway that runs was removed: %v", err)
	}
	for _, ln := range open {
		ln.Close()
		ln.Close()
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.sock*"))
	if err != nil || runtime.GOOS != "windows" && !slices.Equal(left, []string{foreign, foreign + ".lock"}) {
		t.Errorf("left: %q, %v", left, err)
	}
}
