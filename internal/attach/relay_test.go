package attach

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

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
