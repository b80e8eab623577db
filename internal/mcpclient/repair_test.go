package mcpclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

func TestDecodeRepair(t *testing.T) {
	nested := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	for name, tt := range map[string]struct {
		in             string
		result         string
		repaired, deep bool
	}{
		"valid":              {`{"jsonrpc":"2.0","id":1,"result":{"a":"äö😀\ud800"}}`, `{"a":"äö😀\ud800"}`, false, false},
		"one byte":           {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"x\xffy\"}}", `{"a":"x` + "\uFFFD" + `y"}`, true, false},
		"a cut character":    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xe2\x82\"}}", `{"a":"` + "\uFFFD" + `"}`, true, false},
		"already replaced":   {`{"jsonrpc":"2.0","id":1,"result":{"a":"` + "\uFFFD" + `"}}`, `{"a":"` + "\uFFFD" + `"}`, false, false},
		"in an ignored part": {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"x\":\"\xff\"}", `{}`, true, false},
		"deep":               {`{"jsonrpc":"2.0","id":1,"result":` + nested + `}`, nested, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(m mcp.Message, err error) {
				if err != nil || m.ID != "1" || string(m.Result) != tt.result || m.Repaired != tt.repaired || m.Deep != tt.deep {
					t.Errorf("got %+v, %v", m, err)
				}
			}
			check(mcp.Decode([]byte(tt.in), mcp.Limits{Repair: true}))
			mcp.DecodeEach([]byte("["+tt.in+"]"), mcp.Limits{Repair: true}, check)
		})
	}
}

func TestBatchRefusesInvalidUTF8(t *testing.T) {
	n := 0
	mcp.DecodeEach([]byte("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":\"\xff\"}}]"), mcp.Limits{}, func(_ mcp.Message, err error) {
		n++
		if d, ok := err.(*mcp.DecodeError); !ok || d.Code != mcp.CodeParseError {
			t.Errorf("error = %v, want a parse error", err)
		}
	})
	if n != 1 {
		t.Errorf("%d results, want 1", n)
	}
}

// scriptedServer answers the handshake of the handshake era, and then each request
// with the next line; %s is the id of the request.
func scriptedServer(t *testing.T, log *slog.Logger, lines ...string) (*Client, <-chan mcp.Message) {
	t.Helper()
	toClient, fromServer := io.Pipe()
	toServer, fromClient := io.Pipe()
	got := make(chan mcp.Message, 16)
	go func() {
		defer fromServer.Close()
		s := mcp.NewStream(toServer, io.Discard, mcp.StreamOptions{})
		answered := 0
		for {
			m, err := s.Receive()
			if err != nil {
				return
			}
			switch {
			case m.Method == "server/discover":
				fmt.Fprintf(fromServer, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
			case m.Method == "initialize":
				fmt.Fprintf(fromServer, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, initResult)
			case m.IsRequest():
				fmt.Fprintln(fromServer, strings.ReplaceAll(lines[answered], "%s", string(m.ID)))
				answered++
			case m.IsResponse():
				got <- m
			}
		}
	}()
	c, err := Connect(t.Context(), OverLink(mcp.NewStream(toClient, fromClient, mcp.StreamOptions{})), Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, got
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func TestResponseIsRepairedOnce(t *testing.T) {
	var out lockedBuffer
	c, _ := scriptedServer(t, slog.New(slog.NewTextHandler(&out, nil)),
		"{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"a\":\"\xff\"}}",
		`{"jsonrpc":"2.0","id":%s,"result":{}}`)
	repaired := 0
	r := tool.Request{Method: "tools/call", Exchange: tool.Exchange{Repaired: func() { repaired++ }}}
	result, err := c.Do(t.Context(), r)
	if err != nil || string(result) != `{"a":"`+"\uFFFD"+`"}` || repaired != 1 {
		t.Errorf("got %s, %v, repaired %d times", result, err, repaired)
	}
	if _, err := c.Do(t.Context(), r); err != nil || repaired != 1 {
		t.Errorf("a valid answer: %v, repaired %d times", err, repaired)
	}
	if n := strings.Count(out.b.String(), "not valid UTF-8"); n != 1 {
		t.Errorf("%d log lines, want 1:\n%s", n, out.b.String())
	}
}

func TestDeepMessagesOfAServer(t *testing.T) {
	nested := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	c, got := scriptedServer(t, nil,
		`{"jsonrpc":"2.0","id":%s,"result":{"tools":[`+nested+`,1]}}`,
		`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"a":`+nested+`}}`+"\n"+
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"a":`+nested+`}}`+"\n"+
			`{"jsonrpc":"2.0","id":%s,"result":{"a":`+nested+`}}`)
	list, err := c.Do(t.Context(), tool.Request{Method: "tools/list"})
	if err != nil {
		t.Fatalf("tools/list: %v", err)
	}
	var items []bool
	for item := range rawjson.Elements(rawjson.Field(list, "tools")) {
		items = append(items, rawjson.TooDeep(item, mcp.DefaultMaxDepth))
	}
	if fmt.Sprint(items) != "[true false]" {
		t.Errorf("too deep: %v, want the first of two", items)
	}
	if _, err := c.Do(t.Context(), tool.Request{Method: "tools/call"}); tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "deeper than 256") {
		t.Errorf("error = %v, want one that names the limit", err)
	}
	if m := <-got; m.ID != `"q"` || m.Error == nil || m.Error.Code != mcp.CodeInvalidRequest {
		t.Errorf("the server's request was answered with %+v", m)
	}
	if c.Err() != nil {
		t.Errorf("the connection ended: %v", c.Err())
	}
}

// TestProgressTokenIsAlwaysSent: progress is delivered if the call has a Notify
// function, and contains a token only if the caller sent one.
func TestProgressTokenIsAlwaysSent(t *testing.T) {
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}` + "\n" + `{"jsonrpc":"2.0","id":%s,"result":{}}`
	c, _ := scriptedServer(t, nil, progress, progress, progress, progress)
	for _, tt := range []struct{ method, params, want string }{
		{"tools/call", ``, ``},
		{"tools/call", `{"name":"x"}`, ``},
		{"tools/call", `{"_meta":{"progressToken":"t"}}`, `"t"`},
		{"vendor/index", ``, ``}, // it may take long, too
	} {
		method, params, want := tt.method, tt.params, tt.want
		var got []string
		_, err := c.Do(t.Context(), tool.Request{Method: method, Params: []byte(params), Exchange: tool.Exchange{
			Notify: func(_ string, params json.RawMessage) {
				got = append(got, string(rawjson.Field(params, "progressToken")))
			},
		}})
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s %s: progress with the tokens %q, %v, want one with %q", method, params, got, err, want)
		}
	}
}
