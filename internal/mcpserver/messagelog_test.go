package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/telemetry"
)

// syncBuffer is a buffer that several goroutines may use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *syncBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *syncBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestClientMessagesAreLogged: at the level trace the messages from and to
// clients are logged, redacted and bounded in size; at debug they are not.
func TestClientMessagesAreLogged(t *testing.T) {
	var out syncBuffer
	const maxLogged = 4 << 10 // of one message
	level := new(slog.LevelVar)
	level.Set(telemetry.SlogTrace)
	s := newSite(t, Options{
		Log:    slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})),
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
	}, &scripted{serve: func(context.Context, *Request) (json.RawMessage, error) {
		return json.RawMessage(`{"text":"the answer of hunter2"}`), nil
	}})
	h := s.open(mcp.Version20250618, `{}`)
	long := strings.Repeat("x", 3*maxLogged)
	r := s.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"secret":"hunter2","long":"`+long+`"}}`, h...)
	wantBody(t, r, 200, "hunter2") // the caller gets it as it is
	text := out.String()
	for _, want := range []string{"client message received", "method=initialize", "protocolVersion", "method=tools/call", "client message sent", "the answer of ***"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	if strings.Contains(text, "hunter2") || strings.Contains(text, strings.Repeat("x", maxLogged)) {
		t.Error("the log has a secret, or a whole long message")
	}
	level.Set(slog.LevelDebug)
	before := len(out.String())
	wantBody(t, s.post(`{"jsonrpc":"2.0","id":3,"method":"tools/call"}`, h...), 200)
	if text := out.String()[before:]; strings.Contains(text, "client message") {
		t.Errorf("at debug: %s", text)
	}
}
