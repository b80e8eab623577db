package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
)

// A caller whose connection breaks during a call resumes the stream without
// loss.
func TestStreamIsResumedWithoutLoss(t *testing.T) {
	step := make(chan struct{})
	s := newSite(t, Options{}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		for i := range 6 {
			r.Exchange.Notify("notifications/progress", json.RawMessage(fmt.Sprintf(`{"progress":%d}`, i)))
			if i == 2 {
				select {
				case <-step:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		}
		return json.RawMessage(`{"done":true}`), nil
	}})
	h := s.open(mcp.Version20251125, `{}`)
	ctx, cancel := context.WithCancel(ctxFor(t))
	e := readEvents(t, s.send(ctx, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h...))
	e.want()
	if m := e.want(); string(rawjson.Field(m.Params, "progress")) != "1" {
		t.Fatalf("got %+v", m)
	}
	cancel()
	step <- struct{}{}
	for _, last := range []string{e.id, strings.TrimSuffix(e.id, "2") + "0"} { // and once more from the start
		again := readEvents(t, s.send(ctxFor(t), "GET", "", append(h, headerLastEvent, last)...))
		from := 2
		if strings.HasSuffix(last, "_0") {
			from = 0
		}
		for i := from; i < 6; i++ {
			if m := again.want(); string(rawjson.Field(m.Params, "progress")) != fmt.Sprint(i) {
				t.Fatalf("after %s, event %d is %+v", last, i, m)
			}
		}
		if m := again.want(); string(m.Result) != `{"done":true}` {
			t.Fatalf("answer = %+v", m)
		}
		again.wantEnd()
	}
	wantBody(t, s.do("GET", "", append(h, headerLastEvent, e.id[:strings.LastIndexByte(e.id, '_')]+"_99")...), 400, "events after this Last-Event-ID are no longer available")
}

func TestBrokenStreamExpires(t *testing.T) {
	b := newBlocked()
	inner := b.serve
	b.serve = func(ctx context.Context, r *Request) (json.RawMessage, error) {
		r.Exchange.Notify("notifications/progress", nil)
		return inner(ctx, r)
	}
	s := newSite(t, Options{ResumeTimeout: time.Millisecond}, b)
	h := s.open(mcp.Version20251125, `{}`)
	ctx, cancel := context.WithCancel(ctxFor(t))
	e := readEvents(t, s.send(ctx, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h...))
	e.want()
	<-b.begun
	cancel()
	b.wantEnd(t, errCallerLeft)
}

func TestSlowResponseBecomesStream(t *testing.T) {
	for version, prime := range map[string]bool{mcp.Version20250618: false, mcp.Version20251125: true} {
		t.Run(version, func(t *testing.T) {
			goOn := make(chan struct{})
			s := newSite(t, Options{StreamAfter: time.Millisecond, KeepAlive: time.Millisecond}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
				<-goOn
				return json.RawMessage(`{}`), nil
			}})
			h := s.open(version, `{}`)
			resp := s.send(ctxFor(t), "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, h...)
			e := readEvents(t, resp)
			line, _ := e.r.ReadString('\n')
			if got := strings.HasPrefix(line, "id: "); got != prime {
				t.Errorf("first line %q, prime %v", line, prime)
			}
			for range 3 { // keep-alives
				if line, err := e.r.ReadString(':'); err != nil {
					t.Fatal(line, err)
				}
			}
			close(goOn)
			if m := e.want(); m.ID != "1" {
				t.Errorf("answer = %+v", m)
			}
		})
	}
}

// TestReplayMemoryIsBounded reads many large streamed responses in one session,
// and leaves others unread: streams over the replay limit must not stay in
// memory until they expire.
func TestReplayMemoryIsBounded(t *testing.T) {
	const answers, size = 100, 1 << 20
	large := json.RawMessage(`"` + strings.Repeat("x", size) + `"`)
	goOn := make(chan struct{})
	s := newSite(t, Options{ResumeTimeout: time.Hour}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		r.Exchange.Notify("notifications/progress", nil)
		if string(rawjson.Field(r.Params, "wait")) == "true" {
			<-goOn
		}
		return large, nil
	}})
	h := s.open(mcp.Version20251125, `{}`)
	const first = maxReplay + 44 // the heap may have 20 fewer
	for i := range first {
		e := readEvents(t, s.send(ctxFor(t), "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, i+1), h...))
		e.want()
		e.want()
		e.wantEnd()
	}
	// Readers that are still ending and pooled buffers are freed within a few
	// collections; streams kept for a replay would stay for an hour.
	limit := uint64((maxReplay + 24) * size)
	for ctx := ctxFor(t); ; runtime.Gosched() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapAlloc <= limit {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("after %d answers of 1 MiB the heap has %d MiB, want at most %d", first, m.HeapAlloc>>20, limit>>20)
		}
	}
	// Callers that disconnect before the response arrives.
	for i := range answers {
		ctx, leave := context.WithCancel(ctxFor(t))
		h := h
		if i%10 == 0 {
			h = s.open(mcp.Version20251125, `{}`)
		}
		e := readEvents(t, s.send(ctx, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"wait":true}}`, answers+i+1), h...))
		e.want()
		leave()
	}
	close(goOn)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && s.Server.replay.Load() < 16*size; {
		runtime.Gosched()
	}
	if kept := s.Server.replay.Load(); kept > replayBytes {
		t.Errorf("%d bytes are kept for replays, want at most %d", kept, replayBytes)
	}
	for _, session := range s.Server.sessions.all() {
		s.Server.end(session)
	}
	for ctx := ctxFor(t); s.Server.replay.Load() != 0; runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatalf("%d bytes are counted after every session ended", s.Server.replay.Load())
		}
	}
}
