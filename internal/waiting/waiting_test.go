package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
	"junctor/internal/tool"
)

var ann, bob, admin = tool.Caller{ID: "key:ann", Name: "ann"}, tool.Caller{ID: "key:bob", Name: "bob"}, tool.Caller{ID: "key:root", Name: "root", Admin: true}

func anyone(*Record, *Input) error { return nil }

// twoNodes returns two running services that share a store.
func twoNodes(t *testing.T) (a, b *Service) {
	t.Helper()
	return twoNodesWith(t, func(s Store) Store { return s })
}

// twoNodesWith is like twoNodes, but the first service uses the store that wrap
// returns.
func twoNodesWith(t *testing.T, wrap func(Store) Store) (a, b *Service) {
	t.Helper()
	cfg := store.DefaultConfig()
	cfg.Path = sqlitetest.Create(t, filepath.Join(t.TempDir(), "junctor.db"))
	s, err := sqlite.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a, b = NewService(wrap(s), slog.New(slog.DiscardHandler)), NewService(s, slog.New(slog.DiscardHandler))
	done := make(chan error, 2)
	for _, n := range []*Service{a, b} {
		go func() { done <- n.Run(ctx) }()
		for n.stopped() { // until it runs, it takes over no tasks
			runtime.Gosched()
		}
	}
	t.Cleanup(func() {
		cancel()
		<-done
		<-done
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, b
}

func start(t *testing.T, s *Service, c tool.Caller) *Call {
	t.Helper()
	call, err := s.Start(t.Context(), StartOptions{Caller: c, Tool: "files:delete", Arguments: json.RawMessage(`{"path":"a"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// expire releases the lease of a process and stops its renewal, as if the
// process had died.
func expire(t *testing.T, s *Service) {
	t.Helper()
	s.mu.Lock()
	clear(s.own)
	s.mu.Unlock()
	if err := s.store.Release(t.Context(), leaseOf(s.owner), s.owner); err != nil {
		t.Fatal(err)
	}
}

// awaitStatus waits until a record has the status.
func awaitStatus(t *testing.T, s *Service, id string, want Status) Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var version int64
	for {
		r, err := s.Await(ctx, id, version)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status == want {
			return r
		}
		if version = r.Version; ctx.Err() != nil {
			t.Fatalf("status %s, want %s", r.Status, want)
		}
	}
}

func TestAnotherNodeAnswers(t *testing.T) {
	a, b := twoNodes(t)
	call := start(t, a, ann)
	type outcome struct {
		in  Input
		err error
	}
	got := make(chan outcome, 1)
	go func() {
		in, err := call.Ask(t.Context(), Input{Kind: KindApproval})
		got <- outcome{in, err}
	}()
	r := awaitStatus(t, b, call.ID(), InputRequired)
	if _, err := b.Answer(t.Context(), r.ID, r.Inputs[0].ID, admin, json.RawMessage(`"yes"`), anyone); err != nil {
		t.Fatal(err)
	}
	if o := <-got; o.err != nil || string(o.in.Answer) != `"yes"` || o.in.By != admin.ID {
		t.Errorf("the owner got %+v", o)
	}
	if _, err := b.Answer(t.Context(), r.ID, r.Inputs[0].ID, admin, json.RawMessage(`"no"`), anyone); !errors.Is(err, ErrAnswered) {
		t.Errorf("a second answer: %v", err)
	}
	if err := call.Finish(t.Context(), tool.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil); err != nil {
		t.Fatal(err)
	}
	if r := awaitStatus(t, b, call.ID(), Completed); string(r.Result) != `{"content":[]}` {
		t.Errorf("the result on the other node is %s", r.Result)
	}
}

func TestWithdrawnQuestionCannotBeAnswered(t *testing.T) {
	a, b := twoNodes(t)
	call := start(t, a, ann)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := call.Ask(ctx, Input{Kind: KindApproval})
		ended <- err
	}()
	r := awaitStatus(t, b, call.ID(), InputRequired)
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Ask returned %v", err)
	}
	if _, err := b.Answer(t.Context(), r.ID, r.Inputs[0].ID, admin, json.RawMessage(`"yes"`), anyone); !errors.Is(err, ErrAnswered) {
		t.Errorf("an answer after the client left: %v", err)
	}
	if err := call.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(t.Context(), call.ID()); !errors.Is(err, ErrNotFound) {
		t.Errorf("a released record: %v", err)
	}
}

func TestAnotherNodeCancels(t *testing.T) {
	a, b := twoNodes(t)
	call := start(t, a, ann)
	ctx, stop := call.Context(t.Context())
	defer stop()
	if From(ctx) != call {
		t.Error("the context has no record")
	}
	if _, err := b.Cancel(t.Context(), call.ID(), func(*Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), ErrCancelled) {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
	if err := call.Finish(t.Context(), tool.Result{Raw: json.RawMessage(`{}`)}, nil); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Get(t.Context(), call.ID()); err != nil || r.Status != Cancelled || r.Result != nil {
		t.Errorf("a cancelled call has %+v, %v", r, err)
	}
}

func TestCallOfEndedProcessFails(t *testing.T) {
	a, b := twoNodes(t)
	call := start(t, a, ann)
	expire(t, a)
	if list, err := b.List(t.Context(), func(r *Record) bool { return !r.Status.Final() }); err != nil || len(list) != 0 {
		t.Errorf("open calls of an ended process: %v, %v", list, err)
	}
	if r, err := b.Get(t.Context(), call.ID()); err != nil || r.Status != Failed || r.Error.Code != tool.Unavailable {
		t.Errorf("the call of an ended process: %+v, %v", r, err)
	}
}

// TestTaskOfEndedProcessIsTakenOver checks that a call that waits for a
// server's task is taken over, including questions, when its process has died.
func TestTaskOfEndedProcessIsTakenOver(t *testing.T) {
	a, b := twoNodes(t)
	finish := make(chan error)
	b.SetResume(func(ctx context.Context, r *Record, ask func(context.Context, string, json.RawMessage) (json.RawMessage, error)) (tool.Result, error) {
		answer, err := ask(ctx, "elicitation/create", json.RawMessage(`{}`))
		if err == nil {
			err = <-finish
		}
		return tool.Result{Raw: json.RawMessage(`{"task":"` + r.Task.ID + `","answer":` + string(answer) + `}`)}, err
	})
	for want, failure := range map[Status]error{Completed: nil, Failed: errors.New("no such task")} {
		call := start(t, a, ann)
		call.SetTask(t.Context(), tool.ServerTask{Server: "files", ID: "7"})
		expire(t, a)
		b.takeOverTasks(t.Context())
		r := awaitStatus(t, b, call.ID(), InputRequired)
		if r.Owner != b.owner {
			t.Errorf("the owner is %s", r.Owner)
		}
		if _, err := b.Answer(t.Context(), r.ID, "", ann, json.RawMessage(`"yes"`), anyone); err != nil {
			t.Fatal(err)
		}
		finish <- failure
		r = awaitStatus(t, a, call.ID(), want)
		if failure == nil && string(r.Result) != `{"task":"7","answer":"yes"}` || failure != nil && !strings.Contains(r.Error.Message, "has ended") {
			t.Errorf("%s: %s, %+v", want, r.Result, r.Error)
		}
	}
}

// TestAnswerToDeadProcessCounts checks that an answer that was accepted, but
// that the process did not live to receive, answers the question when the next
// process is asked it again.
func TestAnswerToDeadProcessCounts(t *testing.T) {
	a, b := twoNodes(t)
	params := json.RawMessage(`{ "message": "a < b?" }`)
	b.SetResume(func(ctx context.Context, r *Record, ask func(context.Context, string, json.RawMessage) (json.RawMessage, error)) (tool.Result, error) {
		answer, err := ask(ctx, "elicitation/create", params)
		return tool.Result{Raw: answer}, err
	})
	call := start(t, a, ann)
	call.SetTask(t.Context(), tool.ServerTask{Server: "files", ID: "7"})
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error)
	go func() {
		_, err := call.Ask(ctx, Input{Kind: "elicitation/create", Params: params})
		asked <- err
	}()
	awaitStatus(t, b, call.ID(), InputRequired)
	a.mu.Lock()
	clear(a.own) // it receives nothing any more
	a.mu.Unlock()
	if _, err := b.Answer(t.Context(), call.ID(), "", ann, json.RawMessage(`"yes"`), anyone); err != nil {
		t.Fatal(err)
	}
	expire(t, a)
	b.takeOverTasks(t.Context())
	if r := awaitStatus(t, b, call.ID(), Completed); string(r.Result) != `"yes"` {
		t.Errorf("result %s", r.Result)
	}
	cancel()
	<-asked
}

// TestStoppedProcessLeavesTask checks that a process that stops leaves the
// record of a task to the next one.
func TestStoppedProcessLeavesTask(t *testing.T) {
	a, b := twoNodes(t)
	for _, s := range []*Service{a, b} {
		s.SetResume(func(context.Context, *Record, func(context.Context, string, json.RawMessage) (json.RawMessage, error)) (tool.Result, error) {
			return tool.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
		})
	}
	call := start(t, a, ann)
	call.SetTask(t.Context(), tool.ServerTask{Server: "files", ID: "7"})
	if err := call.Finish(t.Context(), tool.Result{}, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the connection has ended", Err: tool.ErrStopping}); err != nil {
		t.Fatal(err)
	}
	expire(t, a)
	awaitStatus(t, b, call.ID(), Completed)
}

func TestQuestionExpires(t *testing.T) {
	a, _ := twoNodes(t)
	call := start(t, a, ann)
	if _, err := call.Ask(t.Context(), Input{Kind: KindApproval, Expires: time.Now().Add(time.Millisecond)}); !errors.Is(err, ErrExpired) {
		t.Errorf("Ask returned %v", err)
	}
	if r, err := a.Get(t.Context(), call.ID()); err != nil || r.Status != Working || len(r.Inputs) != 0 {
		t.Errorf("after the time: %+v, %v", r, err)
	}
}

func TestLimitsOfRecords(t *testing.T) {
	a, _ := twoNodes(t)
	call := start(t, a, ann)
	if err := call.Finish(t.Context(), tool.Result{Raw: make(json.RawMessage, maxResult+1)}, nil); err != nil {
		t.Fatal(err)
	}
	if r, err := a.Get(t.Context(), call.ID()); err != nil || r.Status != Failed || r.Error.Code != tool.TooLarge {
		t.Errorf("a large result: %+v, %v", r, err)
	}
	a.mu.Lock()
	a.open[bob.ID] = maxOpen
	a.mu.Unlock()
	if _, err := a.Start(t.Context(), StartOptions{Caller: bob, Tool: "files:delete"}); tool.KindOf(err) != tool.RateLimited {
		t.Errorf("one call too many: %v", err)
	}
	if c := start(t, a, ann); c == nil {
		t.Error("the limit of one caller stops another")
	}
	long, err := a.Start(t.Context(), StartOptions{Caller: ann, Tool: "files:write", Arguments: json.RawMessage(`{"text":"` + strings.Repeat("a", maxArguments) + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := a.Get(t.Context(), long.ID()); err != nil || !json.Valid(r.Arguments) || r.Arguments[0] != '"' {
		t.Errorf("long arguments: %.40s, %v", r.Arguments, err)
	}
}

// TestListOfTheCaller checks that a caller gets its own calls, newest first,
// with the status messages and without results.
func TestListOfTheCaller(t *testing.T) {
	a, b := twoNodes(t)
	mux := http.NewServeMux()
	b.Routes(mux)
	first := start(t, a, ann)
	second := start(t, a, ann)
	start(t, a, bob)
	second.SetMessage(t.Context(), "half way")
	list := func() (out struct{ Calls []Record }) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/api/waiting", nil).WithContext(tool.WithCaller(t.Context(), ann)))
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || len(out.Calls) != 2 {
			t.Fatalf("list %s, %v", w.Body, err)
		}
		return out
	}
	if got := list().Calls; got[0].ID != second.ID() || got[0].Message != "half way" || got[1].ID != first.ID() {
		t.Errorf("list %+v", got)
	}
	if err := second.Finish(t.Context(), tool.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil); err != nil {
		t.Fatal(err)
	}
	second.SetMessage(t.Context(), "too late")
	if got := list().Calls[0]; got.Status != Completed || got.Message != "" || got.Result != nil {
		t.Errorf("ended call %+v", got)
	}
}

func TestOnlyTheCallerReadsAndAnswersOverHTTP(t *testing.T) {
	a, b := twoNodes(t)
	mux := http.NewServeMux()
	b.Routes(mux)
	mux.HandleFunc("GET /api/calls/{id}", b.Show)
	send := func(c tool.Caller, method, id, body string) int {
		req := httptest.NewRequest(method, "/api/calls/"+id, strings.NewReader(body))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, req.WithContext(tool.WithCaller(t.Context(), c)))
		return w.Code
	}
	call := start(t, a, ann)
	asked := make(chan Input, 1)
	go func() {
		in, _ := call.Ask(t.Context(), Input{Kind: "elicitation/create", Params: json.RawMessage(`{}`)})
		asked <- in
	}()
	awaitStatus(t, b, call.ID(), InputRequired)
	for name, tt := range map[string]struct {
		caller       tool.Caller
		method, body string
		want         int
	}{
		"another reads":         {bob, "GET", "", 404},
		"an administrator too":  {admin, "GET", "", 404},
		"the caller reads":      {ann, "GET", "", 200},
		"another answers":       {bob, "POST", `{"answer":{"action":"accept"}}`, 404},
		"an administrator":      {admin, "POST", `{"answer":{"action":"accept"}}`, 404},
		"another cancels":       {bob, "DELETE", "", 404},
		"an empty answer":       {ann, "POST", `{}`, 400},
		"of an unknown input":   {ann, "POST", `{"input":"x","answer":{}}`, 400},
		"an administrator ends": {admin, "DELETE", "", 404},
	} {
		if got := send(tt.caller, tt.method, call.ID(), tt.body); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	if got := send(ann, "POST", call.ID(), `{"answer":{"action":"accept"}}`); got != 200 {
		t.Fatalf("the caller's answer: %d", got)
	}
	if in := <-asked; string(in.Answer) != `{"action":"accept"}` {
		t.Errorf("answer %s", in.Answer)
	}

	approval := start(t, a, ann)
	go func() { _, _ = approval.Ask(t.Context(), Input{Kind: KindApproval}) }()
	awaitStatus(t, b, approval.ID(), InputRequired)
	if got := send(ann, "POST", approval.ID(), `{"answer":{"action":"allow"}}`); got != 403 {
		t.Errorf("the caller approves its own call: %d", got)
	}
	if got := send(admin, "GET", approval.ID(), ""); got != 200 {
		t.Errorf("an administrator reads an approval: %d", got)
	}
	if got := send(ann, "DELETE", approval.ID(), ""); got != 200 {
		t.Errorf("the caller withdraws: %d", got)
	}
	<-approval.Cancelled()
}

// TestProfilesHaveTheirOwnCalls checks that a caller with a profile has only
// the calls that were made with it. Other calls of the caller may be of tools
// that the profile does not have.
func TestProfilesHaveTheirOwnCalls(t *testing.T) {
	a, _ := twoNodes(t)
	with := func(names ...string) tool.Caller {
		c := ann
		for _, name := range names {
			c.Profiles = append(c.Profiles, tool.UnknownProfile(name))
		}
		return c
	}
	for _, tt := range []struct {
		maker, reader tool.Caller
		want          bool
	}{
		{with(), with(), true},
		{with(), with("coding"), false},
		{with("coding"), with("coding"), true},
		{with("support"), with("coding"), false},
		{with("support"), with("coding", "support"), false},
		{with("coding"), with(), true},
		{with("coding"), bob, false},
	} {
		call := start(t, a, tt.maker)
		r, err := a.Get(t.Context(), call.ID())
		if err != nil || Readable(&tt.reader, &r) != tt.want {
			t.Errorf("a call with the profiles %v is readable with %v (%s): %t, %v; want %t", tt.maker.Profiles.Names(), tt.reader.Profiles.Names(), tt.reader.ID, !tt.want, err, tt.want)
		}
	}
}

// TestEndedCallsMakeRoom checks that calls that ended without a result also
// count, so that their records cannot fill the store.
func TestEndedCallsMakeRoom(t *testing.T) {
	a, _ := twoNodes(t)
	a.maxEnded = 2
	var ids []string
	for _, caller := range []tool.Caller{bob, ann, ann, ann} {
		call := start(t, a, caller)
		if err := call.Finish(t.Context(), tool.Result{}, &tool.Error{Kind: tool.Denied, Msg: "no"}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, call.ID())
	}
	for i, want := range []error{nil, ErrNotFound, nil, nil} {
		if _, err := a.Get(t.Context(), ids[i]); !errors.Is(err, want) {
			t.Errorf("call %d: %v, want %v", i, err, want)
		}
	}
}

// TestResultsWithOwnLifetimesAreCounted checks that an expired result does not
// hide older ones of its caller that are still stored.
func TestResultsWithOwnLifetimesAreCounted(t *testing.T) {
	a, _ := twoNodes(t)
	now := time.Now()
	a.evictResults(t.Context(), "ann", storedResult{id: "long", bytes: 1, expires: now.Add(time.Hour)})
	a.evictResults(t.Context(), "ann", storedResult{id: "short", bytes: 1, expires: now.Add(-time.Second)})
	a.evictResults(t.Context(), "bob", storedResult{id: "other", bytes: 1, expires: now.Add(time.Hour)})
	if list := a.kept["ann"]; len(list) == 0 || list[0].id != "long" {
		t.Errorf("counted for ann: %v", list)
	}
}
