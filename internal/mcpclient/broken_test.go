package mcpclient

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// What servers write in place of a response. In each %s is the call's id.
var brokenAnswers = map[string]struct {
	line string
	lost bool // the call fails immediately; otherwise a valid response follows
}{
	"a value that is no JSON":        {`{"jsonrpc":"2.0","id":%s,"result":{"mean":NaN}}`, true},
	"the id comes last":              {`{"result":{"mean":NaN},"jsonrpc":"2.0","id":%s}`, true},
	"nested too deeply":              {`{"jsonrpc":"2.0","id":%s,"result":{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`, true},
	"cut off":                        {`{"jsonrpc":"2.0","id":%s,"result":{"te`, true},
	"neither result nor error":       {`{"jsonrpc":"2.0","id":%s}`, true},
	"a log line in JSON with an id":  {`{"level":"info","id":%s,"msg":"called"}`, false},
	"a broken log line":              {`{"level":"info","id":%s,"msg":NaN}`, false},
	"a broken request of the server": {`{"jsonrpc":"2.0","id":%s,"method":"roots/list","params":{"a":NaN}}`, false},
	"an answer to nobody":            {`{"jsonrpc":"2.0","id":"none-%s","result":{"mean":NaN}}`, false},
}

func wantBroken(t *testing.T, c *Client, lost bool) {
	t.Helper()
	result, err := c.Do(t.Context(), tool.Request{Method: "tools/call"})
	switch {
	case lost && (tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "is not a JSON-RPC message: ")):
		t.Errorf("got %s, %v; want the broken answer told", result, err)
	case !lost && (err != nil || string(result) != `{"fine":true}`):
		t.Errorf("got %s, %v; want the answer that follows", result, err)
	}
}

func TestBrokenResponseOnStreamFailsItsCall(t *testing.T) {
	for name, tt := range brokenAnswers {
		t.Run(name, func(t *testing.T) {
			toClient, fromServer := io.Pipe()
			toServer, fromClient := io.Pipe()
			go func() {
				s := mcp.NewStream(toServer, io.Discard, mcp.StreamOptions{})
				defer fromServer.Close()
				m, _ := s.Receive()
				fmt.Fprintf(fromServer, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
				m, _ = s.Receive()
				fmt.Fprintf(fromServer, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, initResult)
				s.Receive()
				m, _ = s.Receive()
				fmt.Fprintf(fromServer, tt.line+"\n", m.ID)
				if !tt.lost {
					fmt.Fprintf(fromServer, `{"jsonrpc":"2.0","id":%s,"result":{"fine":true}}`+"\n", m.ID)
				}
				s.Receive() // until the client disconnects
			}()
			c, err := Connect(t.Context(), OverLink(mcp.NewStream(toClient, fromClient, mcp.StreamOptions{})), Options{DiscoverTimeout: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			wantBroken(t, c, tt.lost)
		})
	}
}

func TestBrokenResponseInEventFailsItsCall(t *testing.T) {
	for name, tt := range brokenAnswers {
		t.Run(name, func(t *testing.T) {
			c := web(t, testOptions(), HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
				if noStream(w, r) {
					return
				}
				events := []string{"data: " + fmt.Sprintf(tt.line, m.ID) + "\n\n"}
				if !tt.lost {
					events = append(events, event1(m, `{"fine":true}`))
				}
				sse(w, events...)
			}})
			wantBroken(t, c, tt.lost)
		})
	}
}
