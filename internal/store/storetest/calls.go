package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
)

// Call returns the n-th of many different records with all fields set.
func Call(n int) store.Call {
	return store.Call{
		ID: fmt.Sprintf("req-%d", n), RequestID: fmt.Sprintf("theirs-%d", n), Parent: "req-0", Time: at(n), Duration: 1234 * time.Microsecond,
		Face: "tools", Caller: "key:ci", CallerName: "CI", Session: "s1", Server: "github", Tool: "create_issue", Method: "tools/call",
		Status: store.StatusOK, Arguments: json.RawMessage(`{"title":"x"}`), Result: json.RawMessage(`{"content":[]}`),
		ArgBytes: 13, ResultBytes: 14, TraceID: "0af7651916cd43dd8448eb211c80319c", Node: "a",
		Stages: store.Stages{{Name: "policy", Took: 3 * time.Microsecond}, {Name: "dispatch", Took: time.Millisecond}},
	}
}

func appendAndRead(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	if n := must[int64](t)(s.LastSeq(ctx)); n != 0 {
		t.Errorf("LastSeq of an empty log = %d, want 0", n)
	}
	if got := must[[]store.Call](t)(s.Calls(ctx, store.CallQuery{})); len(got) != 0 {
		t.Errorf("Calls of an empty log = %d records", len(got))
	}
	if _, err := s.Call(ctx, "req-1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Call of an empty log: error = %v, want ErrNotFound", err)
	}
	full := Call(1)
	bare := store.Call{ID: "bare", Status: store.StatusFailed, Kind: "TIMEOUT", Error: "took too long"}
	for _, c := range []store.Call{full, bare} {
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	full.Seq, bare.Seq = 1, 2
	equal(t, "Call(full)", must[store.Call](t)(s.Call(ctx, full.ID)), full)
	got := must[store.Call](t)(s.Call(ctx, bare.ID))
	equal(t, "Call(bare)", got, bare)
	if got.Arguments != nil || got.Result != nil || got.Stages != nil || !got.Time.IsZero() {
		t.Errorf("what was empty came back as %+v", got)
	}
	equal(t, "Calls", must[[]store.Call](t)(s.Calls(ctx, store.CallQuery{})), []store.Call{full, bare})
	if n := must[int64](t)(s.LastSeq(ctx)); n != 2 {
		t.Errorf("LastSeq = %d, want 2", n)
	}

	again := Call(1)
	again.Error = "the second with this id"
	if err := s.Append(ctx, again); err != nil {
		t.Fatal(err)
	}
	if got := must[store.Call](t)(s.Call(ctx, again.ID)); got.Seq != 3 {
		t.Errorf("Call of an id used twice has Seq %d, want the newest, 3", got.Seq)
	}
}

// callByRequestID checks that a call is found by the id that its caller chose,
// unless that is the ID of another call.
func callByRequestID(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	for n, theirs := range []string{"a", "b", "b", "req-1", ""} {
		c := Call(n)
		c.RequestID = theirs
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]int64{"a": 1, "b": 3, "req-1": 2} {
		if got := must[store.Call](t)(s.Call(ctx, id)); got.Seq != want {
			t.Errorf("Call(%q) is record %d, want %d", id, got.Seq, want)
		}
	}
	for _, id := range []string{"", "c", "eq-1", "theirs"} {
		if c, err := s.Call(ctx, id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Call(%q) = record %d, %v; want ErrNotFound", id, c.Seq, err)
		}
	}
}

// callBrief checks that a brief query omits only arguments, results and stages.
func callBrief(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	failed := Call(2)
	failed.Status, failed.Error = store.StatusFailed, "broken"
	var want []store.Call
	for i, c := range []store.Call{Call(1), failed} {
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
		c.Seq, c.Arguments, c.Result, c.Stages = int64(i+1), nil, nil, nil
		want = append(want, c)
	}
	equal(t, "brief records", must[[]store.Call](t)(s.Calls(ctx, store.CallQuery{Brief: true})), want)
}

// callSearch checks that records are found by text in their arguments, results,
// errors, names and ids.
func callSearch(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	for i, c := range []store.Call{
		{Arguments: json.RawMessage(`{"city":"Zürich"}`), Result: json.RawMessage(`{"content":[]}`)},
		{Arguments: json.RawMessage(`{}`), Result: json.RawMessage("\"it RAINS in Z[ürich] @`{|}~\"")},
		{Status: store.StatusFailed, Error: "no Rain today"},
		{Tool: "rain", RequestID: "Mine-7", CallerName: "Ada", Arguments: json.RawMessage(`"a\nb 100% _x"`)},
	} {
		c.ID, c.Time = fmt.Sprintf("call-%d", i+1), at(i+1)
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string][]int64{
		"rain": {2, 3, 4}, "RAIN": {2, 3, 4}, "mine-": {4}, "ADA": {4}, "call-3": {3}, "zürich": {1}, "ürich": {1, 2}, "z[": {2}, "@`{|}~": {2}, `a\n`: {4}, "100%": {4}, "_x": {4},
		"content": {1}, "nowhere": nil, "rain'": nil, "in z": {2},
	} {
		equal(t, text, seqs(must[[]store.Call](t)(s.Calls(ctx, store.CallQuery{Text: text}))), want)
	}
	if got := must[store.CallStats](t)(s.Stats(ctx, store.CallQuery{Text: "rain"})); got.Total.Calls != 3 {
		t.Errorf("the statistics of a text have %d calls, want 3", got.Total.Calls)
	}
	equal(t, "with another filter", seqs(must[[]store.Call](t)(s.Calls(ctx, store.CallQuery{Text: "rain", Status: store.StatusFailed, Limit: 1}))), []int64{3})
}

// callBytes checks that a log returns arguments and results as they were sent,
// except for invalid UTF-8, which earlier versions wrote: it is replaced because
// strict clients could not read a page with it.
func callBytes(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	for name, raw := range map[string]string{
		"spaces and order":   `{ "b" : 1,   "a":[ ] }`,
		"large number":       `{"n":12345678901234567890.000}`,
		"escapes":            `{"h":"<a&b>","u":"\u2028é","nul":"\u0000"}`,
		"astral and quotes":  `{"😀":"'\";--"}`,
		"repeated key":       `{"a":1,"a":2}`,
		"scalar":             `"text"`,
		"null":               `null`,
		"long":               `"` + fmt.Sprintf("%0200000d", 7) + `"`,
		"not UTF-8":          "\"a\xffb\xc3\"",
		"unpaired surrogate": `"\ud800"`,
	} {
		c := Call(0)
		c.ID, c.Arguments, c.Result = name, json.RawMessage(raw), json.RawMessage(raw)
		c.Error = "quote ' and \n newline é 😀"
		if err := s.Append(ctx, c); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := must[store.Call](t)(s.Call(ctx, name))
		want := strings.ToValidUTF8(raw, "\uFFFD")
		if string(got.Arguments) != want || string(got.Result) != want || got.Error != c.Error {
			t.Errorf("%s: came back as %.80s, want %.80s", name, got.Arguments, want)
		}
	}
}

// callText checks that text with bytes that a database cannot store does not
// prevent a record from being written.
func callText(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	c := Call(0)
	c.ID, c.Error, c.Tool, c.Session = "odd", "nul \x00 and \xff bytes", "t\x00", "\xc3("
	if err := s.Append(ctx, c); err != nil {
		t.Fatal(err)
	}
	got := must[store.Call](t)(s.Call(ctx, "odd"))
	if !strings.Contains(got.Error, "nul ") || !strings.Contains(got.Error, " bytes") || !strings.HasPrefix(got.Tool, "t") {
		t.Errorf("came back as %q, %q", got.Error, got.Tool)
	}
}

func callQueries(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	for i, c := range []store.Call{
		{Server: "a", Tool: "x", Caller: "local", Status: store.StatusOK, Face: "cli"},
		{Server: "a", Tool: "y", Caller: "local", Status: store.StatusError, Face: "cli"},
		{Server: "b", Tool: "x", Caller: "key:k", Status: store.StatusOK, Face: "chat", Session: "s", Parent: "1"},
		{Server: "b", Tool: "x", Caller: "key:k", Status: store.StatusFailed, Face: "chat", Session: "s"},
		{Server: "a", Tool: "x", Caller: "key:k", Status: store.StatusOK, Face: "tools"},
	} {
		c.ID, c.Time = fmt.Sprint(i+1), at(i+1)
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		q    store.CallQuery
		want []int64
	}{
		"all":              {want: []int64{1, 2, 3, 4, 5}},
		"server":           {q: store.CallQuery{Server: "a"}, want: []int64{1, 2, 5}},
		"tool":             {q: store.CallQuery{Tool: "x"}, want: []int64{1, 3, 4, 5}},
		"server and tool":  {q: store.CallQuery{Server: "a", Tool: "x"}, want: []int64{1, 5}},
		"caller":           {q: store.CallQuery{Caller: "key:k"}, want: []int64{3, 4, 5}},
		"session":          {q: store.CallQuery{Session: "s"}, want: []int64{3, 4}},
		"parent":           {q: store.CallQuery{Parent: "1"}, want: []int64{3}},
		"face":             {q: store.CallQuery{Face: "cli"}, want: []int64{1, 2}},
		"ok":               {q: store.CallQuery{Status: store.StatusOK}, want: []int64{1, 3, 5}},
		"error":            {q: store.CallQuery{Status: store.StatusError}, want: []int64{2}},
		"failed":           {q: store.CallQuery{Status: store.StatusFailed}, want: []int64{4}},
		"since":            {q: store.CallQuery{Since: at(3)}, want: []int64{3, 4, 5}},
		"until":            {q: store.CallQuery{Until: at(3)}, want: []int64{1, 2}},
		"span":             {q: store.CallQuery{Since: at(2), Until: at(4)}, want: []int64{2, 3}},
		"newest":           {q: store.CallQuery{Limit: 2}, want: []int64{4, 5}},
		"newest of server": {q: store.CallQuery{Server: "a", Limit: 2}, want: []int64{2, 5}},
		"oldest":           {q: store.CallQuery{Limit: 2, Forward: true}, want: []int64{1, 2}},
		"after":            {q: store.CallQuery{AfterSeq: 2, Limit: 2}, want: []int64{3, 4}},
		"before":           {q: store.CallQuery{BeforeSeq: 4, Limit: 2}, want: []int64{2, 3}},
		"between":          {q: store.CallQuery{AfterSeq: 1, BeforeSeq: 4}, want: []int64{2, 3}},
		"nothing":          {q: store.CallQuery{Server: "a' OR '1'='1"}},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, "sequence numbers", seqs(must[[]store.Call](t)(s.Calls(ctx, tt.q))), tt.want)
		})
	}
}

func callPaging(t *testing.T, open Opener) {
	s, ctx := open(t), deadline(t)
	const n = 250
	for i := range n {
		if err := s.Append(ctx, Call(i)); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(must[[]store.Call](t)(s.Calls(ctx, store.CallQuery{}))); got != store.DefaultLimit {
		t.Errorf("a query without limit returned %d records, want %d", got, store.DefaultLimit)
	}
	if got := len(must[[]store.Call](t)(s.Calls(ctx, store.CallQuery{Limit: 1 << 30}))); got != n {
		t.Errorf("a query with a huge limit returned %d records, want %d", got, n)
	}
	var back, forth []int64
	for q := (store.CallQuery{Limit: 40}); ; {
		page := must[[]store.Call](t)(s.Calls(ctx, q))
		if len(page) == 0 {
			break
		}
		back = append(seqs(page), back...)
		q.BeforeSeq = page[0].Seq
	}
	for q := (store.CallQuery{Limit: 40, Forward: true}); ; {
		page := must[[]store.Call](t)(s.Calls(ctx, q))
		if len(page) == 0 {
			break
		}
		forth = append(forth, seqs(page)...)
		q.AfterSeq = page[len(page)-1].Seq
	}
	for i, got := range [][]int64{back, forth} {
		if len(got) != n || got[0] != 1 || got[n-1] != n || !slices.IsSorted(got) {
			t.Errorf("paging %d gave %d records, want 1 to %d in order", i, len(got), n)
		}
	}
}

// appendConcurrently checks that records appended concurrently through two
// handles get unique sequence numbers without gaps.
func appendConcurrently(t *testing.T, open Opener) {
	ctx := deadline(t)
	handles := []store.Store{open(t), open(t)}
	const callers, each = 16, 20
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				if err := handles[c%len(handles)].Append(ctx, Call(c*each+i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, s := range handles { // a handle sees its own records immediately, and those of others after a read
		must[int64](t)(s.LastSeq(ctx))
	}
	for _, s := range handles {
		got := must[[]store.Call](t)(s.Calls(ctx, store.CallQuery{Limit: store.MaxLimit}))
		ids := map[string]bool{}
		for i, c := range got {
			if c.Seq != int64(i+1) {
				t.Fatalf("record %d has sequence number %d: numbers must have no gaps", i, c.Seq)
			}
			ids[c.ID] = true
		}
		if len(ids) != callers*each {
			t.Errorf("%d different records, want %d", len(ids), callers*each)
		}
	}
}

func appendCanceled(t *testing.T, open Opener) {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Append(ctx, Call(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with a canceled context = %v, want context.Canceled", err)
	}
	if err := s.Append(deadline(t), Call(2)); err != nil {
		t.Errorf("Append afterwards: %v", err)
	}
}

func reopen(t *testing.T, open Opener) {
	ctx := deadline(t)
	s := open(t)
	if err := s.Append(ctx, Call(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t)
	if err := s.Append(ctx, Call(2)); err != nil {
		t.Fatal(err)
	}
	equal(t, "sequence over a restart", seqs(must[[]store.Call](t)(s.Calls(ctx, store.CallQuery{}))), []int64{1, 2})
}

func seqs(calls []store.Call) []int64 {
	var out []int64
	for _, c := range calls {
		out = append(out, c.Seq)
	}
	return out
}
