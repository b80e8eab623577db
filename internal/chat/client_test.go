package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/coder/websocket"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
)

// client is one WebSocket.
type client struct {
	t    testing.TB
	conn *websocket.Conn
	id   string
	seq  int64
	all  []message
}

type message struct {
	Type    string
	Seq     int64
	Raw     json.RawMessage
	Payload struct {
		State, Message, SessionID, Title, Model, Content, Text, Tool, Code, CallID string
		QuestionID, Kind, Server, URL, Action                                      string
		Active, Retry                                                              bool
		Schema                                                                     json.RawMessage
		Prompt                                                                     []wire.PromptLine
		Unavailable                                                                []wire.ServerState
		Messages                                                                   []wire.HistoryMessage
		Arguments                                                                  json.RawMessage
		Data                                                                       struct {
			CallID, Stop string
			IsError      bool
			Result       json.RawMessage
			Arguments    json.RawMessage
			Progress     json.RawMessage
			Unavailable  []wire.ServerState
		}
		Turn, Session llm.Usage
		Context       int
	}
}

func (c *client) send(kind string, payload any) {
	c.t.Helper()
	b, _ := json.Marshal(map[string]any{"type": kind, "payload": payload})
	c.raw(string(b))
}

func (c *client) raw(data string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, []byte(data)); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

func (c *client) sendText(text string) { c.t.Helper(); c.send("message", map[string]any{"text": text}) }

func (c *client) read() (message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	_, data, err := c.conn.Read(ctx)
	if err != nil {
		return message{}, err
	}
	m := message{Raw: data}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("%w in %s", err, data)
	}
	checkSchema(c.t, data)
	c.all = append(c.all, m)
	if m.Type != wire.TypeConnection { // its number is the end of the replay
		c.seq = max(c.seq, m.Seq)
	}
	return m, nil
}

func (c *client) next() message {
	c.t.Helper()
	m, err := c.read()
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	return m
}

// readUntil reads up to and including the first message for which fits returns
// true.
func (c *client) readUntil(fits func(message) bool) message {
	c.t.Helper()
	for {
		m := c.next()
		if fits(m) {
			return m
		}
	}
}

func (c *client) kind(kind string) message {
	c.t.Helper()
	return c.readUntil(func(m message) bool { return m.Type == kind })
}

func finished(m message) bool {
	return m.Type == wire.TypeStatus && m.Payload.State == "complete" && m.Payload.Tool == ""
}

// reply reads to the end of the reply and returns its text and stop reason.
func (c *client) reply() (text, stop string) {
	c.t.Helper()
	from := len(c.all)
	m := c.readUntil(finished)
	for _, m := range c.all[from:] {
		if m.Type == wire.TypeText {
			text += m.Payload.Content
		}
	}
	return text, m.Payload.Data.Stop
}

// results returns the results of the calls that the client saw complete, by
// tool.
func (c *client) results() map[string]string {
	out := map[string]string{}
	for _, m := range c.all {
		if m.Type == wire.TypeStatus && m.Payload.Tool != "" && m.Payload.State == "complete" {
			out[m.Payload.Tool] += string(m.Payload.Data.Result)
		}
	}
	return out
}
