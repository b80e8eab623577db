package chatclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coder/websocket"

	"junctor/internal/chat/wire"
)

// maxMessage bounds one message of the gateway, which may contain a long
// history.
const maxMessage = 64 << 20

// message is one message of the gateway.
type message struct {
	Type    string          `json:"type"`
	Seq     int64           `json:"seq"`
	Payload json.RawMessage `json:"payload"`
}

// connection is the WebSocket connection of a conversation. It is always being
// read, because the gateway sends pings while it waits for the user.
type connection struct {
	client  *http.Client
	session string // "" means a new one
	seq     int64  // the latest sequence number received; -1 means none

	conn *websocket.Conn
	in   chan message
	stop context.CancelFunc
	done chan struct{} // closed when the connection has failed or was closed
	err  error         // the reason; must be read only after done
}

// dial connects and resumes after the latest message received.
func (c *connection) dial(ctx context.Context) error {
	q := url.Values{}
	if c.session != "" {
		q.Set("sessionId", c.session)
	}
	if c.seq >= 0 {
		q.Set("after", strconv.FormatInt(c.seq, 10))
	}
	conn, _, err := websocket.Dial(ctx, "ws://junctor/ws?"+q.Encode(), &websocket.DialOptions{HTTPClient: c.client})
	if err != nil {
		return fmt.Errorf("connect to the chat: %w", err)
	}
	conn.SetReadLimit(maxMessage)
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.conn, c.stop, c.in, c.done = conn, stop, make(chan message, 64), make(chan struct{})
	go c.read(reading, c.in, c.done)
	return nil
}

func (c *connection) read(ctx context.Context, in chan<- message, done chan<- struct{}) {
	defer close(done)
	for {
		_, data, err := c.conn.Read(ctx)
		if err != nil {
			c.err = fmt.Errorf("the chat connection was lost: %w", err)
			if code := websocket.CloseStatus(err); code != -1 {
				c.err = errors.New("the gateway ended the chat")
			}
			return
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			c.err = fmt.Errorf("read the gateway's message: %w", err)
			return
		}
		select {
		case in <- m:
		case <-ctx.Done():
			c.err = ctx.Err()
			return
		}
	}
}

// next returns the next message.
func (c *connection) next(ctx context.Context) (message, error) {
	var m message
	select {
	case m = <-c.in:
	default:
		select {
		case m = <-c.in:
		case <-ctx.Done():
			return message{}, ctx.Err()
		case <-c.done:
			select {
			case m = <-c.in: // received before the connection ended
			default:
				return message{}, c.err
			}
		}
	}
	c.seq = max(c.seq, m.Seq)
	if m.Type == wire.TypeConnection {
		var hello wire.ConnectionPayload
		if json.Unmarshal(m.Payload, &hello) == nil && hello.State != "error" {
			c.session = hello.SessionID
		}
	}
	return m, nil
}

// ready reconnects if the connection was lost.
func (c *connection) ready(ctx context.Context) error {
	select {
	case <-c.done:
		c.close()
		return c.dial(ctx)
	default:
		return nil
	}
}

func (c *connection) send(ctx context.Context, kind string, payload any) error {
	data, err := json.Marshal(map[string]any{"type": kind, "payload": payload})
	if err != nil {
		return err
	}
	if err := c.conn.Write(ctx, websocket.MessageText, data); err != nil {
		return fmt.Errorf("the chat connection was lost: %w", err)
	}
	return nil
}

func (c *connection) close() {
	if c.conn != nil {
		c.stop()
		c.conn.CloseNow()
		<-c.done
	}
}
