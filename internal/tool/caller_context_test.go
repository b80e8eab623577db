package tool

import (
	"context"
	"testing"
)

func TestCallerFrom(t *testing.T) {
	if got := CallerFrom(context.Background()); got.ID != Local.ID || !got.Admin {
		t.Errorf("CallerFrom of an empty context = %+v, want Local", got)
	}
	want := Caller{ID: "key:ci", Name: "ci", Servers: []string{"git*"}}
	if got := CallerFrom(WithCaller(context.Background(), want)); got.ID != want.ID || got.Admin || len(got.Servers) != 1 {
		t.Errorf("CallerFrom = %+v, want %+v", got, want)
	}
}
