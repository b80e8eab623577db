package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// Questions to a client that does not read are refused when too many are
// queued. Notifications do not count towards their limit.
func TestQuestionsThatNobodyReadsAreBounded(t *testing.T) {
	near, _ := mcp.Pipe()
	box, st := newOutbox(near, maxQuestionBytes), newEventStream("s", true, 1)
	large := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	for name, out := range map[string]outlet{"outbox": box, "event stream": st} {
		t.Run(name, func(t *testing.T) {
			for range 2 * maxQuestionBytes / len(large) {
				out.put(&mcp.Message{Method: "notifications/progress", Params: large})
			}
			taken, asked := 0, 100
			for i := range asked {
				if out.put(&mcp.Message{ID: mcp.ID(strconv.Itoa(i)), Method: "elicitation/create", Params: large}) {
					taken++
				}
			}
			if taken < 10 || taken > 16 {
				t.Errorf("%d of %d questions of 1 MiB wait", taken, asked)
			}
		})
	}
	st.take(firstReader)
	if !st.put(&mcp.Message{ID: "100", Method: "elicitation/create", Params: large}) {
		t.Error("refused although the others have been read")
	}
	st.take(firstReader)
	if !st.put(&mcp.Message{ID: "101", Method: "elicitation/create", Params: make(json.RawMessage, maxQuestionBytes)}) {
		t.Error("one alone was refused")
	}
}

// A server that keeps asking and cancelling gets an error if the client does
// not read.
func TestAskingClientThatDoesNotReadFails(t *testing.T) {
	last := make(chan error, 1)
	l := newLine(t, New(Options{Limits: mcp.Limits{MaxBytes: 10_000}}, &scripted{serve: func(ctx context.Context, r *Request) (json.RawMessage, error) {
		withdrawn, cancel := context.WithCancel(ctx)
		cancel()
		for range 10 {
			_, err := r.Exchange.Ask(withdrawn, "elicitation/create", json.RawMessage(`{"message":"`+strings.Repeat("x", 6000)+`"}`))
			if !errors.Is(err, context.Canceled) {
				last <- err
				return nil, err
			}
		}
		last <- nil
		return nil, nil
	}}))
	l.ask(initialize)
	l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	if refused, ok := errors.AsType[*mcp.Error](<-last); !ok || refused.Code != tool.RateLimited.JSONRPC() {
		t.Errorf("refused with %v", refused)
	}
}

// A response waits for room, whichever of its members is large.
func TestOutboxCountsIDsAndErrors(t *testing.T) {
	large := strings.Repeat("x", 400<<10)
	for name, m := range map[string]*mcp.Message{
		"id":            {ID: mcp.ID(`"` + large + `"`)},
		"error message": {ID: "1", Error: &mcp.Error{Message: large}},
		"error data":    {ID: "1", Error: &mcp.Error{Data: json.RawMessage(`"` + large + `"`)}},
		"result":        {ID: "1", Result: json.RawMessage(`"` + large + `"`)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOutbox(nil, 1<<20)
				defer o.close()
				var queued atomic.Int32
				go func() {
					for range 10 {
						o.answer(m)
						queued.Add(1)
					}
				}()
				synctest.Wait()
				if n := queued.Load(); n != 2 {
					t.Errorf("%d answers of 400 KiB are queued within 1 MiB", n)
				}
			})
		})
	}
}

// The requests that are accepted from a caller that reads no responses are
// bounded.
func TestCallerThatDoesNotReadIsNotReadFrom(t *testing.T) {
	for name, handler := range map[string]func() Handler{
		"answered": func() Handler { return &scripted{} },
		"refused":  func() Handler { return newBlocked() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t, New(Options{Limits: mcp.Limits{MaxBytes: 2000}, MaxCalls: 4}, handler()))
				l.ask(initialize)
				const limit = 1000
				sent := 0
				for sent < limit {
					done := make(chan struct{})
					go func() {
						defer close(done)
						fmt.Fprintf(l.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", sent+1)
					}()
					synctest.Wait()
					select {
					case <-done:
						sent++
						continue
					default:
					}
					break
				}
				if sent == limit {
					t.Errorf("%d requests were taken", sent)
				}
				l.stop()
				l.wantEnd()
			})
		})
	}
}

// stuckWriter is a full pipe without a reader. Like standard output, closing it
// does not interrupt a write.
type stuckWriter chan struct{}

func (w stuckWriter) Write([]byte) (int, error) {
	<-w
	return 0, io.ErrClosedPipe
}

func TestStreamEndsWhenAWriteDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(in io.Closer, stop func())
		want error
	}{
		"the program ends": {func(_ io.Closer, stop func()) { stop() }, nil},
		"the input ends":   {func(in io.Closer, _ func()) { in.Close() }, errNotRead},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{}, &scripted{})
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				inR, in := io.Pipe()
				out, done := make(stuckWriter), make(chan error, 1)
				defer close(out)
				go func() { done <- s.ServeStream(ctx, inR, out) }()
				fmt.Fprintln(in, initialize)
				synctest.Wait()
				began := time.Now()
				c.end(in, stop)
				if err := <-done; err != c.want {
					t.Errorf("ServeStream = %v, want %v", err, c.want)
				}
				if took := time.Since(began); ctx.Err() != nil && took >= s.opts.WriteTimeout {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
