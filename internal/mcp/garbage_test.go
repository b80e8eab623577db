package mcp

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/tool"
)

// endless repeats a text forever.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(b), nil
}

func TestGarbageFloodClosesConnection(t *testing.T) {
	for name, text := range map[string]string{
		"lines":      "y\n",
		"one line":   strings.Repeat("a", 1000),
		"objects":    `{"level":"info"}` + "\n",
		"batches":    `[1,2,3]` + "\n",
		"broken":     `{"jsonrpc":` + "\n",
		"long lines": strings.Repeat("b", 100_000) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // no fake time passes, however busy the machine is
				s := NewStream(&endless{text: text}, io.Discard, StreamOptions{EndFloods: true, Limits: Limits{MaxBytes: 64 << 10}})
				s.r.flood.limit = 2 << 20
				for {
					_, err := s.Receive()
					if _, one := errors.AsType[*DecodeError](err); one {
						continue
					}
					if tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "keeps printing output") {
						t.Errorf("Receive = %v", err)
					}
					return
				}
			})
		})
	}
}

// Occasional invalid output, or messages in between, do not close the
// connection.
func TestOccasionalGarbageIsTolerated(t *testing.T) {
	for name, meanwhile := range map[string]func(*garbageCounter){
		"time passes":     func(*garbageCounter) { time.Sleep(floodTime / 100) },
		"a message comes": (*garbageCounter).message,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &garbageCounter{limit: 1000 * strayCost}
				for i := range 10_000 {
					if err := f.add(strayCost); err != nil {
						t.Fatal(err)
					}
					if i%5 == 0 {
						meanwhile(f)
					}
				}
			})
		})
	}
}
