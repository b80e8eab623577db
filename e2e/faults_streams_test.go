package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The limits of the replay buffers, as in docs/reliability.md.
const (
	replayStreams = 16       // per session
	replayStream  = 4 << 20  // bytes of one stream
	replayBytes   = 64 << 20 // in total
)

// unresumed reads more streams to their end than are stored for replays, and
// then requests replays of all of them.
func (g *faultFixture) unresumed(t *testing.T) {
	const large = replayStream - 1<<20
	sessions := []struct {
		headers       []string
		streams, size int
		last          []string // the ids of the first events of each stream
	}{
		{streams: replayStreams + 4, size: 1 << 10},
		{streams: replayStreams - 2, size: large}, {streams: replayStreams - 2, size: large}, // together over replayBytes
		{streams: 1, size: replayStream + 1},
	}
	for i := range sessions {
		s := &sessions[i]
		s.headers = g.session20250618(t, "/mcp?mode=direct")
		for n := range s.streams {
			o := g.post("/mcp?mode=direct", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"floods__huge","arguments":{"count":%d},"_meta":{"progressToken":%[1]d}}}`, n+2, s.size),
				append(s.headers, "Accept", "application/json, text/event-stream")...)
			id := firstEvent(o.body)
			if !o.ok() || id == "" || len(o.body) < s.size {
				t.Fatalf("a stream of %d bytes: %s", s.size, o)
			}
			s.last = append(s.last, id)
		}
	}
	replays := func(session int) (n int) {
		s := sessions[session]
		for _, id := range s.last {
			req, err := http.NewRequest("GET", g.url+"/mcp?mode=direct", nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(s.headers); i += 2 {
				req.Header.Set(s.headers[i], s.headers[i+1])
			}
			req.Header.Set("Accept", "text/event-stream")
			req.Header.Set("Last-Event-ID", id)
			switch o := send(req); {
			case o.ok() && len(o.body) >= s.size:
				n++
			case o.status != http.StatusBadRequest || !strings.Contains(o.body, "no longer"):
				t.Errorf("the replay of a stream: %s", o)
			}
		}
		return n
	}
	// Streams are evicted shortly after their reader has reached the end.
	var n int
	g.eventually(t, "at most 16 streams of a session", func() bool { n = replays(0); return n <= replayStreams })
	t.Logf("%d of %d small streams are kept", n, sessions[0].streams)
	g.eventually(t, "at most 64 MiB of streams", func() bool { n = replays(1) + replays(2); return n*large <= replayBytes })
	t.Logf("%d MiB of streams are kept", n*large>>20)
	g.eventually(t, "no stream over 4 MiB", func() bool { return replays(3) == 0 })
	for _, s := range sessions { // closing a session releases its streams immediately
		req, err := http.NewRequest("DELETE", g.url+"/mcp?mode=direct", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", s.headers[1])
		if o := send(req); o.status != http.StatusNoContent {
			t.Errorf("the end of a session: %s", o)
		}
	}
}

// firstEvent returns the id of the first event of a stream.
func firstEvent(stream string) string {
	for line := range strings.Lines(stream) {
		if id, ok := strings.CutPrefix(line, "id:"); ok {
			return strings.TrimSpace(id)
		}
	}
	return ""
}
