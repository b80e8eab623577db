package storetest

import (
	"fmt"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// callStats checks the counts and percentiles of calls.
func callStats(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	empty := must[store.CallStats](t)(s.Stats(ctx, store.CallQuery{}))
	equal(t, "of nothing", empty, store.EmptyStats(store.CallQuery{}))
	for i := range 200 {
		c := store.Call{ID: fmt.Sprint(i), Time: at(i), Server: "a", Tool: "slow", Caller: "local", CallerName: "me", Face: "chat", Status: store.StatusOK, Duration: time.Duration(i+1) * time.Millisecond}
		if i%2 == 1 {
			c.Tool, c.Caller, c.Duration = "fast", "key:k", time.Duration(i+1)*time.Microsecond
		}
		switch i {
		case 10:
			c.Status = store.StatusError
		case 20, 30:
			c.Status = store.StatusFailed
		case 100:
			c.Server, c.Face = "b", "cli"
		}
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	const ms = time.Millisecond
	all := must[store.CallStats](t)(s.Stats(ctx, store.CallQuery{}))
	want := store.CallStats{
		Total: store.CallSummary{Calls: 200, Errors: 1, Failed: 2, P50: 200 * time.Microsecond, P95: 179 * ms, P99: 195 * ms},
		Servers: []store.CallSummary{
			{Server: "a", Calls: 199, Errors: 1, Failed: 2, P50: 200 * time.Microsecond, P95: 181 * ms, P99: 197 * ms},
			{Server: "b", Calls: 1, P50: 101 * ms, P95: 101 * ms, P99: 101 * ms},
		},
		Tools: []store.CallSummary{
			{Server: "a", Tool: "fast", Calls: 100, P50: 100 * time.Microsecond, P95: 190 * time.Microsecond, P99: 198 * time.Microsecond},
			{Server: "a", Tool: "slow", Calls: 99, Errors: 1, Failed: 2, P50: 99 * ms, P95: 191 * ms, P99: 199 * ms},
			{Server: "b", Tool: "slow", Calls: 1, P50: 101 * ms, P95: 101 * ms, P99: 101 * ms},
		},
	}
	want.Callers = []store.CallSummary{
		{Caller: "key:k", CallerName: "me", Calls: 100, P50: 100 * time.Microsecond, P95: 190 * time.Microsecond, P99: 198 * time.Microsecond},
		{Caller: "local", CallerName: "me", Calls: 100, Errors: 1, Failed: 2, P50: 99 * ms, P95: 189 * ms, P99: 197 * ms},
	}
	want.Faces = []store.CallSummary{
		{Face: "chat", Calls: 199, Errors: 1, Failed: 2, P50: 200 * time.Microsecond, P95: 181 * ms, P99: 197 * ms},
		{Face: "cli", Calls: 1, P50: 101 * ms, P95: 101 * ms, P99: 101 * ms},
	}
	near(t, &all.Total, want.Total)
	for name, pair := range map[string][2][]store.CallSummary{
		"servers": {all.Servers, want.Servers}, "tools": {all.Tools, want.Tools}, "callers": {all.Callers, want.Callers}, "faces": {all.Faces, want.Faces},
	} {
		if len(pair[0]) != len(pair[1]) {
			t.Fatalf("%s: %s, want %s", name, show(pair[0]), show(pair[1]))
		}
		for i := range pair[0] {
			near(t, &pair[0][i], pair[1][i])
		}
	}
	for name, tt := range map[string]struct {
		q    store.CallQuery
		want int64
	}{
		"tool":    {store.CallQuery{Tool: "fast"}, 100},
		"server":  {store.CallQuery{Server: "b"}, 1},
		"caller":  {store.CallQuery{Caller: "local"}, 100},
		"api":     {store.CallQuery{Face: "chat"}, 199},
		"status":  {store.CallQuery{Status: store.StatusFailed}, 2},
		"not ok":  {store.CallQuery{Status: store.StatusNotOK}, 3},
		"range":   {store.CallQuery{Since: at(50), Until: at(60)}, 10},
		"none":    {store.CallQuery{Server: "c"}, 0},
		"tools":   {store.CallQuery{Tools: []tool.Name{{Server: "a", Tool: "fast"}, {Server: "b", Tool: "fast"}}}, 100},
		"no tool": {store.CallQuery{Tools: []tool.Name{}}, 0},
		"limit":   {store.CallQuery{Limit: 3, AfterSeq: 100}, 200},
	} {
		if got := must[store.CallStats](t)(s.Stats(ctx, tt.q)); got.Total.Calls != tt.want {
			t.Errorf("%s: %d calls, want %d", name, got.Total.Calls, tt.want)
		}
	}
}

// callIntervals checks the statistics of the intervals of a time range.
func callIntervals(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	for i, c := range []store.Call{{Time: at(9)}, {Time: at(10), Status: store.StatusError}, {Time: at(19).Add(999 * time.Millisecond)}, {Time: at(20), Status: store.StatusFailed}, {Time: at(39)}, {Time: at(40)}} {
		c.ID, c.Duration = fmt.Sprint(i), time.Duration(i+1)*time.Millisecond
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	const ms = time.Millisecond
	got := must[store.CallStats](t)(s.Stats(ctx, store.CallQuery{Since: at(10), Until: at(40), Intervals: 3})).Intervals
	want := []store.CallSummary{
		{From: at(10), Calls: 2, Errors: 1, P50: 2 * ms, P95: 3 * ms, P99: 3 * ms},
		{From: at(20), Calls: 1, Failed: 1, P50: 4 * ms, P95: 4 * ms, P99: 4 * ms},
		{From: at(30), Calls: 1, P50: 5 * ms, P95: 5 * ms, P99: 5 * ms},
	}
	if len(got) != len(want) {
		t.Fatalf("%d intervals, want %d", len(got), len(want))
	}
	for i := range got {
		near(t, &got[i], want[i])
	}
	uneven := must[store.CallStats](t)(s.Stats(ctx, store.CallQuery{Since: at(10), Until: at(41), Intervals: 7})).Intervals
	calls := int64(0)
	for _, part := range uneven {
		calls += part.Calls
	}
	if len(uneven) != 7 || calls != 5 {
		t.Errorf("%d calls in %d intervals, want all 5 in 7", calls, len(uneven))
	}
}

// near compares summaries, allowing durations to be one per cent off.
func near(t testing.TB, got *store.CallSummary, want store.CallSummary) {
	t.Helper()
	for _, d := range [][2]*time.Duration{{&got.P50, &want.P50}, {&got.P95, &want.P95}, {&got.P99, &want.P99}} {
		if diff := *d[0] - *d[1]; max(diff, -diff) <= *d[1]/100 {
			*d[0] = *d[1]
		}
	}
	equal(t, "summary", *got, want)
}
