package chat

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"junctor/internal/llm/llmtest"
)

func TestManySessionsAtOnce(t *testing.T) {
	if testing.Short() || raceDetector {
		load(t, 100, 20)
		return
	}
	load(t, 1000, 200)
}

// load runs a turn with a tool call in many sessions concurrently, breaks some
// of their connections during the reply, and checks that no client misses a
// message.
func load(t *testing.T, sessions, cut int) {
	t.Helper()
	script := llmtest.Script{Chunk: 4, Rules: []llmtest.Rule{
		{When: llmtest.When{Match: `add (\d+) and (\d+)`, Results: llmtest.N(0)}, Reply: llmtest.Reply{Text: "Let me see. ", Calls: []llmtest.Call{{Tool: "calc:add", Args: json.RawMessage(`{"a":"=$1","b":"=$2"}`)}}}},
		{When: llmtest.When{Match: `add (\d+) and (\d+)`, Results: llmtest.N(1)}, Reply: llmtest.Reply{Text: strings.Repeat("It is {{result}}. ", 10)}},
	}}
	r := newFixture(t, script, withConfig(func(c *Config) { c.MessagesPerMinute = 6000 }))
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			c := r.connect("")
			clients := []*client{c}
			c.sendText(fmt.Sprintf("add %d and 1", i))
			if i < cut {
				for range 1 + rand.IntN(6) {
					if m := c.next(); finished(m) {
						break
					}
				}
				c.conn.CloseNow()
				c = r.again(c)
				clients = append(clients, c)
			}
			if last := clients[0].all[len(clients[0].all)-1]; !finished(last) {
				if _, stop := c.reply(); stop != stopEnd {
					t.Errorf("session %d: %s", i, stop)
				}
			}
			want := "Let me see. " + strings.Repeat(fmt.Sprintf("It is %d. ", i+1), 10)
			if got := sequence(t, clients...); got != want {
				t.Errorf("session %d: %q", i, got)
			}
		})
	}
	wg.Wait()
}

// BenchmarkIdleSession reports the memory of a session whose client is
// connected and idle after one turn. It includes the client side, so the figure
// is an upper bound.
func BenchmarkIdleSession(b *testing.B) {
	r := newFixture(b, llmtest.Script{}, withConfig(func(c *Config) { c.MessagesPerMinute = 6000 }))
	warm := r.connect("")
	warm.sendText("hello")
	warm.reply()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n = 500
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = r.connect("")
		clients[i].sendText("hello")
		clients[i].reply()
		r.awaitIdle(clients[i].id)
		clients[i].all = nil
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)
	b.ReportMetric(float64(used)/n, "bytes/session")
	runtime.KeepAlive(clients)
}
