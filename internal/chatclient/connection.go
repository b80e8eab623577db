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

// maxMessage bounds one message of the gateway: a history may be long.
const maxMessage = 64 << 20

// message is one message of the gateway.
type message struct {
	Type    string          `json:"type"`
	Seq     int64           `json:"seq"`
	Payload json.RawMessage `json:"payload"`
}

// chatLine is the connection of a conversation. It is read all the time:
// while the person thinks, the gateway asks whether anybody is still there.
type chatLine struct {
	client  *http.Client
	session string // "" is a new one
	seq     int64  // the latest number seen; -1 is none

	conn *websocket.Conn
	in   chan message
	stop context.CancelFunc
	done chan struct{} // closed when nothing more comes
	err  error         // why; to be read after done
}

// dial connects, after what has been seen already.
func (l *chatLine) dial(ctx context.Context) error {
	q := url.Values{}
	if l.session != "" {
		q.Set("sessionId", l.session)
	}
	if l.seq >= 0 {
		q.Set("after", strconv.FormatInt(l.seq, 10))
	}
	conn, _, err := websocket.Dial(ctx, "ws://junctor/ws?"+q.Encode(), &websocket.DialOptions{HTTPClient: l.client})
	if err != nil {
		return fmt.Errorf("connect to the chat: %w", err)
	}
	conn.SetReadLimit(maxMessage)
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.conn, l.stop, l.in, l.done = conn, stop, make(chan message, 64), make(chan struct{})
	go l.read(reading, l.in, l.done)
	return nil
}

func (l *chatLine) read(ctx context.Context, in chan<- message, done chan<- struct{}) {
	defer close(done)
	for {
		_, data, err := l.conn.Read(ctx)
		if err != nil {
			l.err = fmt.Errorf("the chat connection was lost: %w", err)
			if code := websocket.CloseStatus(err); code != -1 {
				l.err = errors.New("the gateway ended the chat")
			}
			return
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			l.err = fmt.Errorf("read the gateway's message: %w", err)
			return
		}
		select {
		case in <- m:
		case <-ctx.Done():
			l.err = ctx.Err()
			return
		}
	}
}

// next returns the next message.
func (l *chatLine) next(ctx context.Context) (message, error) {
	var m message
	select {
	case m = <-l.in:
	default:
		select {
		case m = <-l.in:
		case <-ctx.Done():
			return message{}, ctx.Err()
		case <-l.done:
			select {
			case m = <-l.in: // what came before the end
			default:
				return message{}, l.err
			}
		}
	}
	l.seq = max(l.seq, m.Seq)
	if m.Type == wire.TypeConnection {
		var hello wire.ConnectionPayload
		if json.Unmarshal(m.Payload, &hello) == nil && hello.State != "error" {
			l.session = hello.SessionID
		}
	}
	return m, nil
}

// ready connects again if the connection was lost.
func (l *chatLine) ready(ctx context.Context) error {
	select {
	case <-l.done:
		l.close()
		return l.dial(ctx)
	default:
		return nil
	}
}

func (l *chatLine) send(ctx context.Context, kind string, payload any) error {
	data, err := json.Marshal(map[string]any{"type": kind, "payload": payload})
	if err != nil {
		return err
	}
	if err := l.conn.Write(ctx, websocket.MessageText, data); err != nil {
		return fmt.Errorf("the chat connection was lost: %w", err)
	}
	return nil
}

func (l *chatLine) close() {
	if l.conn != nil {
		l.stop()
		l.conn.CloseNow()
		<-l.done
	}
}
