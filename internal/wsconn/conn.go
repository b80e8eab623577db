// Package wsconn accepts WebSockets, and closes them in bounded time whatever
// the client does.
package wsconn

import (
	"bufio"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/tool"
)

// CredentialEnded is the close code for a caller whose credential has ended.
const CredentialEnded websocket.StatusCode = 4401

// Conn is the server's side of a WebSocket.
type Conn struct {
	*websocket.Conn
	net net.Conn
}

// Accept upgrades a request whose origin has already been checked. If it fails,
// it has sent the response.
func Accept(w http.ResponseWriter, r *http.Request) (*Conn, error) {
	h := &hijacker{ResponseWriter: w}
	conn, err := websocket.Accept(h, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: conn, net: h.conn}, nil
}

// hijacker records the connection that [websocket.Accept] takes over.
type hijacker struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}

// Close exchanges close frames and closes the connection.
func (c *Conn) Close(code websocket.StatusCode, reason string) error {
	return c.CloseWithin(10*time.Second, code, reason) // the library allows five for each frame
}

// CloseEnded is Close, within a second, for a caller whose credential has ended.
func (c *Conn) CloseEnded() error {
	return c.CloseWithin(time.Second, CredentialEnded, tool.ErrCredentialEnded.Error())
}

// CloseWithin is Close with a timeout, after which it closes the connection
// without close frames. The library waits without a limit for a client that has
// stopped in the middle of a message.
func (c *Conn) CloseWithin(timeout time.Duration, code websocket.StatusCode, reason string) error {
	defer time.AfterFunc(timeout, func() { _ = c.net.Close() }).Stop()
	return c.Conn.Close(code, reason)
}

// CloseNow closes the connection without close frames. It waits for a Close in
// progress.
func (c *Conn) CloseNow() error {
	err := c.Conn.CloseNow()
	_ = c.net.Close() // the library has not closed it if that Close did not end
	return err
}
