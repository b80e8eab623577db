package executor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// silentPerson never answers; it returns when its context is done.
func silentPerson(asked chan<- struct{}) func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
}

func TestStopWaitingWithdrawsApproval(t *testing.T) {
	r := newFixture(t)
	r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"fs:write"}, Approval: catalog.AskApproval}}}, nil)
	asked, ended := make(chan struct{}, 1), make(chan error)
	run := func() {
		c := call("write", `{}`)
		c.Exchange = tool.Exchange{Ask: silentPerson(asked), Capabilities: json.RawMessage(`{"elicitation":{}}`)}
		_, err := r.Call(t.Context(), c)
		ended <- err
	}
	go run()
	<-asked
	r.StopWaiting()
	withdrawn := func() {
		t.Helper()
		if err := <-ended; tool.KindOf(err) != tool.Unavailable || !errors.Is(err, tool.ErrStopping) || !strings.Contains(err.Error(), "fs:write") {
			t.Errorf("a withdrawn approval: %v", err)
		}
	}
	withdrawn()
	go run() // started later
	<-asked
	withdrawn()
	if r.calls != 0 {
		t.Errorf("%d calls reached the upstream", r.calls)
	}
	if len(r.records) != 2 || r.records[0].Status != store.StatusFailed {
		t.Errorf("records: %+v", r.records)
	}
}

// TestStopWaitingWithdrawsQuestions: the server receives an error as the answer
// to its question, and the call continues.
func TestStopWaitingWithdrawsQuestions(t *testing.T) {
	r := newFixture(t)
	r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
		_, err := req.Exchange.Ask(ctx, "elicitation/create", json.RawMessage(`{}`))
		if err == nil || ctx.Err() != nil {
			t.Errorf("the question ended with %v, the call with %v", err, ctx.Err())
		}
		return json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": err.Error()}}, "isError": true})
	}
	asked, done := make(chan struct{}, 1), make(chan struct{})
	c := call("write", `{}`)
	c.Exchange = tool.Exchange{Ask: silentPerson(asked), Capabilities: json.RawMessage(`{"elicitation":{}}`)}
	go func() {
		defer close(done)
		result, err := r.Call(t.Context(), c)
		if err != nil || !strings.Contains(string(result.Raw), "the gateway is stopping") {
			t.Errorf("%s, %v", result.Raw, err)
		}
	}()
	<-asked
	r.StopWaiting()
	<-done
}
