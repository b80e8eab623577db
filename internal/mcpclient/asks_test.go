package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
)

// A request of the server counts until the server has accepted the response, or
// until responseTimeout: a server that accepts no responses cannot create
// goroutines and connections without bound.
func TestAnswersThatAreNotTakenAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan mcp.Message, 2*maxServerRequests)
		s := &webServer{}
		s.handle = func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
			switch {
			case noStream(w, r):
			case m.IsResponse():
				answers <- m
				if m.Error == nil {
					<-r.Context().Done()
				}
			default:
				asked := 0
				ask := func() {
					asked++
					sse(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"roots/list\"}\n\n", asked))
				}
				for range maxServerRequests {
					ask()
				}
				for range maxServerRequests {
					if a := <-answers; a.Error != nil {
						t.Errorf("refused: %v", a.Error)
					}
				}
				ask()
				if a := <-answers; a.Error == nil || !strings.Contains(a.Error.Message, "too many") {
					t.Errorf("one more was answered with %s, %v", a.Result, a.Error)
				}
				time.Sleep(responseTimeout) // fake time
				synctest.Wait()
				ask()
				if a := <-answers; a.Error != nil {
					t.Errorf("refused when the others were over: %v", a.Error)
				}
				sse(w, event1(m, `{}`))
			}
		}
		c := pipeWeb(t, testOptions(), HTTPOptions{}, s)
		r := toolsCall
		r.Exchange.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"roots":[]}`), nil
		}
		if _, err := c.Do(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
}

// A server may reuse the id of a request that it cancelled. Only the new
// request is answered.
func TestAskWithIDOfWithdrawnQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		release := []chan struct{}{make(chan struct{}), make(chan struct{})}
		c := mustPlay(t, testOptions(), func(s *script) {
			s.handshakeEra()
			call := s.want("tools/call")
			s.send(mcp.Message{ID: "1", Method: "roots/list"})
			<-started
			s.notify("notifications/cancelled", `{"requestId":1}`)
			s.send(mcp.Message{ID: "1", Method: "roots/list"})
			<-started
			close(release[0])
			synctest.Wait()
			close(release[1])
			if m := s.next(); m.ID != "1" || string(m.Result) != `{"ask":2}` {
				s.t.Errorf("answered with %s, %v", m.Result, m.Error)
			}
			s.result(call, `{}`)
		})
		var asks atomic.Int32
		r := toolsCall
		r.Exchange.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			n := asks.Add(1)
			started <- struct{}{}
			<-release[n-1]
			return json.RawMessage(fmt.Sprintf(`{"ask":%d}`, n)), nil
		}
		if _, err := c.Do(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
}
