package control

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"junctor/internal/httpstream"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// LiveState is the state that the page follows: the servers that the caller
// may see, the version of the catalogue, and the caller's conversations that
// wait for the user.
type LiveState struct {
	Catalog      uint64        `json:"catalog"` // version of the catalogue; increases when a tool changes
	Servers      []ServerState `json:"servers"`
	WaitingChats []string      `json:"waitingChats"` // ids of the conversations that wait for the user
}

// ServerState is the state of one server.
type ServerState struct {
	Name   string         `json:"name"`
	State  upstream.State `json:"status"`
	Reason string         `json:"reason,omitempty"` // why the server is not connected; absent if it is
}

// minEventInterval is the minimum interval between events, so that many
// servers that connect at the same time cause only one.
const minEventInterval = 100 * time.Millisecond

// events sends the current state and then each change, so that the page does
// not have to poll.
func (c *Control) events(w http.ResponseWriter, r *http.Request) {
	caller := tool.CallerFrom(r.Context())
	format := httpstream.Accepted(r)
	if format == httpstream.None {
		format = httpstream.Events
	}
	stream, ctx := httpstream.New(r.Context(), w, format)
	defer stream.End()
	servers, catalogue := c.Servers.Watch(ctx), c.Tools.Watch(ctx)
	var chats <-chan struct{}
	if c.Chats != nil {
		chats = c.Chats.WatchWaiting(ctx)
	}
	var last []byte
	for {
		if now, err := json.Marshal(c.liveState(&caller)); err == nil && !bytes.Equal(now, last) {
			stream.Send("state", now)
			last = now
		}
		select {
		case <-servers:
		case <-catalogue:
		case <-chats:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(minEventInterval):
		case <-ctx.Done():
			return
		}
	}
}

func (c *Control) liveState(caller *tool.Caller) LiveState {
	out := LiveState{Catalog: c.Tools.Snapshot().Version, Servers: []ServerState{}, WaitingChats: []string{}}
	for _, s := range c.Tools.Servers(caller) {
		out.Servers = append(out.Servers, ServerState{s.Name, s.State, s.Reason})
	}
	if c.Chats != nil {
		out.WaitingChats = c.Chats.Waiting(caller)
	}
	return out
}
