package mcpclient

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"junctor/internal/mcp"
)

// script is the server's end of a connection, controlled by a test.
type script struct {
	t    *testing.T
	link *mcp.PipeEnd
}

// next returns the next message of the client.
func (s *script) next() mcp.Message {
	m, err := s.link.Receive()
	if err != nil {
		s.t.Errorf("the client left: %v", err)
	}
	return m
}

// want returns the next message, which must have the method.
func (s *script) want(method string) mcp.Message {
	m := s.next()
	if m.Method != method {
		s.t.Errorf("got %s %s, want %s", m.Method, m.Params, method)
	}
	return m
}

func (s *script) send(m mcp.Message) {
	if err := s.link.Send(&m); err != nil {
		s.t.Errorf("send: %v", err)
	}
}

func (s *script) result(m mcp.Message, result string) {
	s.send(mcp.Message{ID: m.ID, Result: json.RawMessage(result)})
}

func (s *script) refuse(m mcp.Message, code int, text, data string) {
	s.send(mcp.Message{ID: m.ID, Error: &mcp.Error{Code: code, Message: text, Data: json.RawMessage(data)}})
}

func (s *script) notify(method, params string) {
	s.send(mcp.Message{Method: method, Params: json.RawMessage(params)})
}

const initResult = `{"protocolVersion":"2025-06-18","capabilities":{"logging":{}},"serverInfo":{"name":"old","version":"1"}}`
const discoverResult = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"1"}}}`

// handshakeEra performs the handshake of a server without server/discover.
func (s *script) handshakeEra() {
	s.refuse(s.want("server/discover"), mcp.CodeMethodNotFound, "no", "")
	s.result(s.want("initialize"), initResult)
	s.want("notifications/initialized")
}

// play connects a client to a server that the test scripts.
func play(t *testing.T, o Options, server func(*script)) (*Client, error) {
	t.Helper()
	if o.DiscoverTimeout == 0 {
		o.DiscoverTimeout = time.Hour // do not mistake a busy machine for a silent server
	}
	a, b := mcp.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { server(&script{t, b}) })
	c, err := Connect(t.Context(), OverLink(a), o)
	t.Cleanup(func() {
		if c != nil {
			c.Close()
		}
		wg.Wait()
		b.Close()
	})
	return c, err
}

func mustPlay(t *testing.T, o Options, server func(*script)) *Client {
	t.Helper()
	c, err := play(t, o, server)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	return c
}
