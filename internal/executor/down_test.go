package executor

import (
	"context"
	"encoding/json"
	"testing"

	"junctor/internal/tool"
)

func TestAnUpstreamThatIsDownOpensNoCircuit(t *testing.T) {
	r := newRig(t)
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "fs is down since noon", Err: tool.ErrDown}
	}
	for i := range 20 {
		if _, err := r.Call(t.Context(), call("read", `{"path":"a"}`)); tool.KindOf(err) != tool.UpstreamFailed {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if r.calls != 20 {
		t.Errorf("20 calls were tried %d times; what is down is not tried again", r.calls)
	}
	r.do = succeed
	if _, err := r.Call(t.Context(), call("read", `{"path":"a"}`)); err != nil {
		t.Errorf("the first call after the return: %v", err)
	}
}
