package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

func TestNotificationsReachTheirCall(t *testing.T) {
	var unowned []string
	o := testOptions()
	o.OnNotification = func(method string, _ json.RawMessage) { unowned = append(unowned, method) }
	both := make(chan struct{})
	c := mustPlay(t, o, func(s *script) {
		s.handshakeEra()
		a := s.want("tools/call")
		s.notify("notifications/message", `{"level":"info","data":"for the only call"}`)
		s.send(mcp.Message{ID: `"ask-1"`, Method: "elicitation/create", Params: json.RawMessage(`{"message":"?"}`)})
		if m := s.next(); m.ID != `"ask-1"` || rawjson.FieldString(m.Result, "action") != "accept" {
			s.t.Errorf("the only call was not asked: %+v", m)
		}
		close(both)
		b := s.want("tools/call")
		s.notify("notifications/message", `{"level":"info","data":"for nobody"}`)
		s.send(mcp.Message{ID: "7", Method: "elicitation/create", Params: json.RawMessage(`{"message":"?"}`)})
		if m := s.next(); m.Error == nil || !strings.Contains(m.Error.Message, "perCaller") {
			s.t.Errorf("ambiguous request: %+v", m)
		}
		s.send(mcp.Message{ID: "8", Method: "roots/list", Params: json.RawMessage(fmt.Sprintf(`{"_meta":{"progressToken":%s}}`, b.ID))})
		if m := s.next(); m.Error == nil || m.ID != "8" || m.Error.Message != "b has no roots" {
			s.t.Errorf("request that says whom it concerns: %+v", m)
		}
		s.send(mcp.Message{ID: "9", Method: "ping"})
		if m := s.next(); m.ID != "9" || string(m.Result) != "{}" {
			s.t.Errorf("ping: %+v", m)
		}
		s.send(mcp.Message{ID: "10", Method: "no/such"})
		if m := s.next(); m.Error == nil || m.Error.Code != mcp.CodeMethodNotFound {
			s.t.Errorf("unknown method: %+v", m)
		}
		for i := range 3 {
			s.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, rawjson.Field(a.Params, "_meta", "progressToken"), i))
			s.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, rawjson.Field(b.Params, "_meta", "progressToken"), 10+i))
		}
		s.notify("notifications/progress", `{"progressToken":"never seen","progress":1}`)
		s.notify("notifications/tools/list_changed", `{}`)
		s.notify("notifications/elicitation/complete", `{"elicitationId":"e"}`)
		s.notify("x/unknown", `{}`)
		s.send(mcp.Message{ID: "99", Result: json.RawMessage(`{"for":"nobody"}`)})
		s.result(mcp.Message{ID: `"` + b.ID + `"`}, `{"b":1}`) // an id returned as a string
		s.result(a, `{"a":1}`)
	})
	call := func(name string, seen *[]string, ask func(context.Context, string, json.RawMessage) (json.RawMessage, error)) string {
		result, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x","_meta":{"progressToken":"` + name + `"}}`),
			Exchange: tool.Exchange{Ask: ask, Notify: func(method string, params json.RawMessage) {
				*seen = append(*seen, rawjson.FieldString(params, "data")+rawjson.FieldString(params, "progressToken")+string(rawjson.Field(params, "progress")))
			}}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return string(result)
	}
	var seenA, seenB []string
	var resultA string
	var wg sync.WaitGroup
	wg.Go(func() {
		resultA = call("a", &seenA, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"accept"}`), nil
		})
	})
	<-both
	resultB := call("b", &seenB, func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
		return nil, &mcp.Error{Code: 1, Message: "b has no roots"}
	})
	wg.Wait()
	if resultA != `{"a":1}` || resultB != `{"b":1}` {
		t.Errorf("results %s and %s", resultA, resultB)
	}
	if got, want := strings.Join(seenA, ","), "for the only call,a0,a1,a2"; got != want {
		t.Errorf("a saw %q, want %q", got, want)
	}
	if got, want := strings.Join(seenB, ","), "b10,b11,b12"; got != want {
		t.Errorf("b saw %q, want %q", got, want)
	}
	if got, want := strings.Join(unowned, " "), "notifications/message notifications/tools/list_changed notifications/elicitation/complete x/unknown"; got != want {
		t.Errorf("unowned %q, want %q", got, want)
	}
}

func TestServerRequestIsCancelled(t *testing.T) {
	asked := make(chan struct{})
	c := mustPlay(t, testOptions(), func(s *script) {
		s.handshakeEra()
		m := s.want("tools/call")
		s.send(mcp.Message{ID: "5", Method: "sampling/createMessage"})
		<-asked
		s.notify("notifications/cancelled", `{"requestId":5}`)
		s.notify("notifications/cancelled", `{"requestId":"never"}`)
		s.notify("notifications/cancelled", `{"requestId":{}}`)
		s.notify("notifications/cancelled", `{}`)
		s.result(m, `{}`)
		s.want("x/last") // and nothing before it
	})
	ended := make(chan error, 1)
	_, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Exchange: tool.Exchange{Ask: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		close(asked)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}}})
	if err != nil {
		t.Errorf("call: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the question ended with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Do(ctx, tool.Request{Method: "ping"}); tool.KindOf(err) != tool.Canceled {
		t.Errorf("cancelled before it began: %v", err)
	}
	if err := c.Notify(t.Context(), "x/last", nil); err != nil {
		t.Error(err)
	}
}

func TestServerRequestWithoutHandlerIsRefused(t *testing.T) {
	o := testOptions()
	for name, tt := range map[string]struct {
		caps   Capabilities
		answer func(context.Context, string, json.RawMessage) (json.RawMessage, error)
		want   string
	}{
		"nobody": {o.Capabilities, nil, "no user to ask"},
		"refused": {o.Capabilities, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, &tool.Error{Kind: tool.Denied, Msg: "not today"}
		}, "not today"},
		"internal": {o.Capabilities, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, errors.New("disk")
		}, "internal error"},
		"was not declared": {Capabilities{}, nil, "no user to ask"},
	} {
		t.Run(name, func(t *testing.T) {
			received := make(chan mcp.Message, 1)
			c := mustPlay(t, Options{Capabilities: tt.caps}, func(s *script) {
				s.handshakeEra()
				call := s.want("tools/call")
				s.send(mcp.Message{ID: "1", Method: "elicitation/create"})
				received <- s.next()
				s.result(call, `{}`)
			})
			if _, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Exchange: tool.Exchange{Ask: tt.answer}}); err != nil {
				t.Fatal(err)
			}
			if m := <-received; m.Error == nil || !strings.Contains(m.Error.Message, tt.want) {
				t.Errorf("answer %+v, want %q", m.Error, tt.want)
			}
		})
	}
	t.Run("outside of calls", func(t *testing.T) {
		received := make(chan mcp.Message, 1)
		mustPlay(t, o, func(s *script) {
			s.handshakeEra()
			s.send(mcp.Message{ID: "1", Method: "elicitation/create"})
			received <- s.next()
		})
		if m := <-received; m.Error == nil || !strings.Contains(m.Error.Message, "no user to ask") {
			t.Errorf("answer %+v", m.Error)
		}
	})
}

func TestSlowCallerReceivesAllNotifications(t *testing.T) {
	const sent = 3000
	var seen []string
	first := make(chan struct{})
	all := make(chan struct{})
	c := mustPlay(t, Options{}, func(s *script) {
		s.handshakeEra()
		m := s.want("tools/call")
		s.notify("notifications/progress", `{"progressToken":`+string(m.ID)+`,"progress":-1}`)
		<-first
		for i := range sent {
			s.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, m.ID, i))
		}
		s.send(mcp.Message{ID: "1", Method: "ping"}) // answered when everything before it was read
		s.next()
		close(all)
		s.result(m, `{"done":true}`)
	})
	result, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"_meta":{"progressToken":1}}`), Exchange: tool.Exchange{
		Notify: func(_ string, params json.RawMessage) {
			if len(seen) == 0 {
				close(first)
				<-all
			}
			seen = append(seen, string(rawjson.Field(params, "progress")))
		}}})
	if err != nil || string(result) != `{"done":true}` {
		t.Fatalf("%s, %v", result, err)
	}
	if len(seen) != 1+maxQueued || seen[len(seen)-1] != fmt.Sprint(sent-1) || seen[1] != fmt.Sprint(sent-maxQueued) {
		t.Errorf("saw %d from %s to %s, want the newest %d", len(seen), seen[1], seen[len(seen)-1], maxQueued)
	}
}

func TestErrorWithoutID(t *testing.T) {
	c := mustPlay(t, Options{}, func(s *script) {
		s.handshakeEra()
		s.want("tools/call")
		s.send(mcp.Message{Error: &mcp.Error{Code: mcp.CodeParseError, Message: "cannot read that"}})
	})
	_, err := c.Do(t.Context(), tool.Request{Method: "tools/call"})
	if e, ok := err.(*mcp.Error); !ok || e.Code != mcp.CodeParseError {
		t.Errorf("got %v", err)
	}
}

func TestConnectionEnds(t *testing.T) {
	t.Run("server leaves", func(t *testing.T) {
		c := mustPlay(t, Options{}, func(s *script) {
			s.handshakeEra()
			s.want("tools/call")
			s.link.Close()
		})
		_, err := c.Do(t.Context(), tool.Request{Method: "tools/call"})
		if tool.KindOf(err) != tool.UpstreamFailed || !errors.Is(err, io.EOF) {
			t.Errorf("call: %v", err)
		}
		<-c.Done()
		if c.Err() == nil {
			t.Error("no reason given")
		}
		if _, err := c.Do(t.Context(), tool.Request{Method: "tools/call"}); tool.KindOf(err) != tool.UpstreamFailed {
			t.Errorf("next call: %v", err)
		}
		if err := c.Notify(t.Context(), "x", nil); tool.KindOf(err) != tool.UpstreamFailed {
			t.Errorf("Notify: %v", err)
		}
	})
	t.Run("client closes", func(t *testing.T) {
		got := make(chan struct{})
		c := mustPlay(t, Options{}, func(s *script) {
			s.handshakeEra()
			s.want("x/hello")
			s.want("tools/call")
			close(got)
		})
		if err := c.Notify(t.Context(), "x/hello", json.RawMessage(`{}`)); err != nil {
			t.Errorf("Notify: %v", err)
		}
		go func() {
			<-got
			c.Close()
		}()
		_, err := c.Do(t.Context(), tool.Request{Method: "tools/call"})
		if !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("call: %v", err)
		}
	})
}

func TestTimeouts(t *testing.T) {
	t.Run("request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := mustPlay(t, Options{RequestTimeout: time.Hour}, func(s *script) {
				s.handshakeEra()
				m := s.want("tools/call")
				if n := s.want("notifications/cancelled"); string(rawjson.Field(n.Params, "requestId")) != string(m.ID) {
					s.t.Errorf("cancelled %s, want %s", n.Params, m.ID)
				}
			})
			_, err := c.Do(t.Context(), tool.Request{Method: "tools/call"})
			if tool.KindOf(err) != tool.Timeout {
				t.Errorf("got %v", err)
			}
		})
	})

}

func TestInvalidMessagesAreDropped(t *testing.T) {
	toClient, fromServer := io.Pipe()
	toServer, fromClient := io.Pipe()
	var drops []mcp.DroppedInput
	limits := mcp.Limits{MaxBytes: 4096}
	go func() {
		s := mcp.NewStream(toServer, io.Discard, mcp.StreamOptions{})
		defer fromServer.Close()
		print := func(format string, args ...any) { fmt.Fprintf(fromServer, format+"\n", args...) }
		print("Starting up...")
		print("[info] listening")
		m, _ := s.Receive()
		print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		m, _ = s.Receive()
		print(`> {"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, initResult)
		s.Receive()
		m, _ = s.Receive()
		print(`{"broken`)
		print(`{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}`, m.ID, strings.Repeat("x", 100_000))
		m, _ = s.Receive()
		print(`{"result":{"text":"%s"},"jsonrpc":"2.0","id":%s}`, strings.Repeat("x", 100_000), m.ID)
		m, _ = s.Receive()
		print(`{"jsonrpc":"2.0","id":%s,"result":{"fine":true}}`, m.ID)
		s.Receive() // until the client disconnects
	}()
	c, err := Connect(t.Context(), OverLink(mcp.NewStream(toClient, fromClient, mcp.StreamOptions{Limits: limits, OnDrop: func(d mcp.DroppedInput) { drops = append(drops, d) }})), Options{Limits: limits, DiscoverTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := c.Do(t.Context(), tool.Request{Method: "tools/call"})
		if tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "too large") {
			t.Errorf("large answer: %v", err)
		}
	}
	result, err := c.Do(t.Context(), tool.Request{Method: "tools/call"})
	if err != nil || string(result) != `{"fine":true}` {
		t.Errorf("then: %s, %v", result, err)
	}
	c.Close()
	var previews []string
	for _, d := range drops {
		previews = append(previews, fmt.Sprintf("%.15s %v", d.Preview, d.TooLarge))
	}
	want := `Starting up... false,[info] listenin false,> false,{"broken false,{"jsonrpc":"2.0 true,{"result":{"tex true`
	if got := strings.Join(previews, ","); got != want {
		t.Errorf("dropped %s, want %s", got, want)
	}
}
