package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// Questions to a client that does not read are refused when too much of them
// waits; notifications take nothing of their room.
func TestQuestionsThatNobodyReadsAreBounded(t *testing.T) {
	near, _ := mcp.Pipe()
	box, st := newOutbox(near, maxQuestionBytes), newEventStream("s", true, 1)
	large := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	for name, out := range map[string]outlet{"outbox": box, "event stream": st} {
		t.Run(name, func(t *testing.T) {
			for range 2 * maxQuestionBytes / len(large) {
				out.put(&mcp.Message{Method: "notifications/progress", Params: large})
			}
			taken, asked := 0, 100
			for i := range asked {
				if out.put(&mcp.Message{ID: mcp.ID(strconv.Itoa(i)), Method: "elicitation/create", Params: large}) {
					taken++
				}
			}
			if taken < 10 || taken > 16 {
				t.Errorf("%d of %d questions of 1 MiB wait", taken, asked)
			}
		})
	}
	st.take(firstReader)
	if !st.put(&mcp.Message{ID: "100", Method: "elicitation/create", Params: large}) {
		t.Error("refused although the others have been read")
	}
	st.take(firstReader)
	if !st.put(&mcp.Message{ID: "101", Method: "elicitation/create", Params: make(json.RawMessage, maxQuestionBytes)}) {
		t.Error("one alone was refused")
	}
}

// A server that asks and withdraws without end is told that nobody reads.
func TestAskingAClientThatDoesNotReadFails(t *testing.T) {
	last := make(chan error, 1)
	l := newLine(t, New(Options{Limits: mcp.Limits{MaxBytes: 10_000}}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		withdrawn, cancel := context.WithCancel(ctx)
		cancel()
		for range 10 {
			_, err := r.Exchange.Ask(withdrawn, "elicitation/create", json.RawMessage(`{"message":"`+strings.Repeat("x", 6000)+`"}`))
			if !errors.Is(err, context.Canceled) {
				last <- err
				return nil, err
			}
		}
		last <- nil
		return nil, nil
	}}))
	l.ask(initialize)
	l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	if refused, ok := errors.AsType[*mcp.Error](<-last); !ok || refused.Code != tool.RateLimited.JSONRPC() {
		t.Errorf("refused with %v", refused)
	}
}
