package executor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"junctor/internal/tool"
)

// sure is a call log that reports when it is unavailable.
type sure struct {
	*fixture
	away error
}

func (s *sure) Available(context.Context) error { return s.away }

// TestCallsFailWithoutRecordWhenClosed: with Closed, no call is answered
// without its record, and none is executed if the log is known to be
// unavailable. Without Closed, all calls are served.
func TestCallsFailWithoutRecordWhenClosed(t *testing.T) {
	call := tool.Call{Server: "fs", Tool: "write", Caller: tool.Local, Arguments: []byte(`{}`)}
	forward := tool.Forward{Server: "fs", Method: "prompts/list", Caller: tool.Local}
	var log *sure
	r := newFixture(t, func(o *Options) {
		o.Closed = true
		log = &sure{}
		o.Calls = log
	})
	log.fixture = r
	ctx := context.Background()
	if _, err := r.Call(ctx, call); err != nil {
		t.Fatalf("all is well: %v", err)
	}
	r.broken = errors.New("gone this moment")
	result, err := r.Call(ctx, call)
	if e := tool.AsError(err); e.Kind != tool.Unavailable || !strings.Contains(e.Msg, "was carried out") || result.Raw != nil {
		t.Errorf("without a record: %s, %v", result.Raw, err)
	}
	before := r.calls
	log.away = errors.New("known to be away")
	_, err = r.Call(ctx, call)
	if e := tool.AsError(err); e.Kind != tool.Unavailable || !strings.Contains(e.Msg, "no call is carried out") || e.RetryAfter == 0 {
		t.Errorf("while it is away: %v", err)
	}
	if _, err := r.Forward(ctx, forward); tool.KindOf(err) != tool.Unavailable {
		t.Errorf("a forwarded request while it is away: %v", err)
	}
	if r.calls != before {
		t.Error("a call was carried out that cannot be recorded")
	}
	open := newFixture(t)
	open.broken = errors.New("gone")
	if _, err := open.Call(ctx, call); err != nil {
		t.Errorf("open: %v", err)
	}
}
