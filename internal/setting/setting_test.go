package setting

import (
	"errors"
	"testing"
	"time"
)

type colour string

func (colour) Values() []string { return []string{"red", "blue"} }

func TestProblemPaths(t *testing.T) {
	err := errors.Join(
		Wrong("a", "is %d", 5),
		Prefix("b", errors.Join(Wrong("c", "x"), nil, PrefixIndex("d", 2, errors.Join(Wrong("", "y"), Wrong("e", "z"))))),
		errors.New("plain"),
	)
	want := []Problem{{"a", "is 5"}, {"b.c", "x"}, {"b.d[2]", "y"}, {"b.d[2].e", "z"}, {"", "plain"}}
	got := Problems(err)
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i, p := range got {
		if *p != want[i] {
			t.Errorf("problem %d = %+v, want %+v", i, *p, want[i])
		}
	}
	if got[1].Error() != "b.c: x" || got[4].Error() != "plain" {
		t.Errorf("%v, %v", got[1], got[4])
	}
	if Prefix("a", nil) != nil || Problems(nil) != nil {
		t.Error("nothing became something")
	}
}

func TestChecks(t *testing.T) {
	for name, tt := range map[string]struct {
		err error
		bad bool
	}{
		"negative":     {NotNegative("k", -1), true},
		"zero":         {NotNegative("k", 0.0), false},
		"span":         {CheckMillis("k", MaxMillis), false},
		"span below":   {CheckMillis("k", -1), true},
		"span above":   {CheckMillis("k", MaxMillis+1), true},
		"word":         {OneOf("k", colour("red")), false},
		"no word":      {OneOf("k", colour("")), false},
		"other word":   {OneOf("k", colour("green")), true},
		"no rate":      {(*Rate)(nil).Validate(), false},
		"rate":         {(&Rate{Calls: 1}).Validate(), false},
		"empty rate":   {(&Rate{}).Validate(), true},
		"negative per": {(&Rate{Calls: 1, PerMs: -1}).Validate(), true},
	} {
		if (tt.err != nil) != tt.bad {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
}

func TestDurations(t *testing.T) {
	if got := Millis(1500).Duration(); got != 1500*time.Millisecond {
		t.Error(got)
	}
	if got := (&Rate{PerMs: 1000}).Per(); got != time.Second {
		t.Error(got)
	}
	if got := (*Rate)(nil).Per(); got != time.Minute {
		t.Error(got)
	}
}
