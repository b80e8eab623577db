package tool

import (
	"context"
	"testing"
)

func TestCallerFrom(t *testing.T) {
	if got := CallerFrom(context.Background()); got.ID != AnonymousID || got.Admin || !got.Limited() {
		t.Errorf("CallerFrom of an empty context = %+v, want Anonymous", got)
	}
	want := Caller{ID: "key:ci", Name: "ci", Servers: []string{"git*"}}
	if got := CallerFrom(WithCaller(context.Background(), want)); got.ID != want.ID || got.Admin || len(got.Servers) != 1 {
		t.Errorf("CallerFrom = %+v, want %+v", got, want)
	}
}

func TestAnonymousMayDoNothing(t *testing.T) {
	c := Anonymous
	for _, n := range []Name{{"files", "read"}, {"junctor", "run_code"}, {"junctor", "read_result"}, {"a", ""}, {"", "b"}, {"x:y", "z:*"}} {
		if c.MayUse(n) || c.MaySee(n.Server) || !c.Excludes(n) {
			t.Errorf("%s: may use %v, may see %v, excluded %v", n, c.MayUse(n), c.MaySee(n.Server), c.Excludes(n))
		}
	}
	if c.Admin || c.Chat || c.IsOperator() || !c.Limited() || c.PermitChat() == nil {
		t.Errorf("Anonymous has rights: %+v", c)
	}
}
