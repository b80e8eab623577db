package upstreamtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// Transport connects to the server in this process. Each call makes a new
// connection.
func (s *Server) Transport(context.Context) (mcpclient.Transport, error) {
	client, server := mcp.Pipe()
	go func() {
		time.Sleep(time.Duration(s.script.StartDelayMs) * time.Millisecond)
		_ = s.serve(context.Background(), server)
	}()
	return mcpclient.OverLink(client), nil
}

func (s *Server) serve(ctx context.Context, l mcp.Link) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return s.server.Load().ServeLink(ctx, &link{Link: l, script: s.script, left: cancel, methods: map[mcp.ID]string{}})
}

// link is a connection that misbehaves as the script specifies.
type link struct {
	mcp.Link
	script Script
	left   func() // cancels the calls when the client has disconnected

	mu      sync.Mutex
	methods map[mcp.ID]string // of requests in flight
}

func (l *link) Receive() (mcp.Message, error) {
	for {
		m, err := l.Link.Receive()
		if err != nil {
			if _, once := errors.AsType[*mcp.DecodeError](err); !once {
				l.left()
			}
			return m, err
		}
		switch {
		case l.script.Hang:
			continue
		case m.IsRequest() && m.Method == l.script.LeaveOn:
			l.Link.Close()
			l.left()
			return mcp.Message{}, io.EOF
		case m.IsRequest() && l.script.OldEra && m.Method == "server/discover":
			refusal := &mcp.Message{ID: m.ID, Error: &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}}
			if err := l.Link.Send(refusal); err != nil {
				return mcp.Message{}, err
			}
			continue
		case m.Method == "tools/call":
			l.mu.Lock()
			l.methods[m.ID] = rawjson.FieldString(m.Params, "name")
			l.mu.Unlock()
		}
		return m, nil
	}
}

func (l *link) Send(m *mcp.Message) error {
	if m.IsResponse() {
		l.mu.Lock()
		name := l.methods[m.ID]
		delete(l.methods, m.ID)
		l.mu.Unlock()
		if name == "die" {
			l.Link.Close()
			return io.ErrClosedPipe
		}
		if l.script.WrongIDs {
			wrong := *m
			wrong.ID = `"nobody asked"`
			m = &wrong
		}
	}
	return l.Link.Send(m)
}

// scriptVar is the environment variable with the script of a process that is a
// scripted server.
const scriptVar = "UPSTREAMTEST_SCRIPT"

// Main runs a server if the process was started as one with a configuration of
// [Stdio]; it then does not return. TestMain must call it first.
func Main() {
	raw := os.Getenv(scriptVar)
	if raw == "" {
		return
	}
	var script Script
	if err := json.Unmarshal([]byte(raw), &script); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, line := range script.Stderr {
		fmt.Fprintln(os.Stderr, line)
	}
	for _, line := range script.Stray {
		fmt.Println(line)
	}
	// Not os.Exit, which the race detector delays by a second.
	if script.Exit != 0 {
		syscall.Exit(script.Exit)
	}
	time.Sleep(time.Duration(script.StartDelayMs) * time.Millisecond)
	s := New(script)
	_ = s.serve(context.Background(), mcp.NewStream(os.Stdin, os.Stdout, mcp.StreamOptions{Limits: mcp.Limits{MaxBytes: 1 << 30}}))
	for script.Deaf {
		time.Sleep(time.Hour)
	}
	syscall.Exit(0)
}

// Stdio returns the configuration of an upstream that runs this test binary as
// a server with the script. The test's TestMain must call [Main].
func Stdio(t testing.TB, name string, script Script) upstream.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	c := upstream.DefaultConfig()
	c.Name = name
	c.Transport = upstream.Stdio
	c.Command = self
	// The test binary may start slowly on a busy machine.
	c.StartTimeoutMs = 60_000
	c.Env = map[string]telemetry.Secret{scriptVar: telemetry.Secret(raw)}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" && !strings.Contains(string(raw), "GOCOVERDIR") {
		c.Env["GOCOVERDIR"] = telemetry.Secret(dir) // without it the child prints a warning on stderr
	}
	return c
}
