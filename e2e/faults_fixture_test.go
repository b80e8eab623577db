package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// faultFixture is a gateway on which faults are injected, with the calls that
// it has acknowledged. docs/reliability.md has the table of faults.
type faultFixture struct {
	*gateway
	next atomic.Int64

	mu    sync.Mutex
	acked []string // the texts of calls that were answered with 200
}

// faultServer returns the configuration of a server that misbehaves on request.
func faultServer(t testing.TB, settings string) string {
	return fmt.Sprintf(`{"command":%q%s}`, program(t, "junctor/e2e/testdata/faultserver"), settings)
}

// outcome is the response to a call.
type outcome struct {
	status int
	body   string
	err    error
}

func (o outcome) ok() bool { return o.err == nil && o.status == http.StatusOK }

func (o outcome) String() string { return fmt.Sprintf("%d %.300s %v", o.status, o.body, o.err) }

var faultClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 2 * time.Minute}

// call calls a tool and records the call if it was acknowledged. An empty text
// is replaced by a unique one.
func (g *faultFixture) call(server, tool, text string, count int) outcome {
	if text == "" {
		text = fmt.Sprintf("call-%d", g.next.Add(1))
	}
	body, _ := json.Marshal(map[string]any{"server": server, "tool": tool, "arguments": map[string]any{"text": text, "count": count}})
	res, err := faultClient.Post(g.url+"/call_tool", "application/json", bytes.NewReader(body))
	if err != nil {
		return outcome{err: err}
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode == http.StatusOK {
		g.mu.Lock()
		g.acked = append(g.acked, text)
		g.mu.Unlock()
	}
	return outcome{res.StatusCode, string(answer), err}
}

// awaitServer makes calls until one succeeds, after the server was lost.
func (g *faultFixture) awaitServer(t *testing.T, server string) {
	t.Helper()
	ctx := ctxFor(t)
	for {
		o := g.call(server, "echo", "", 0)
		if o.ok() {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s does not answer again: %s", server, o)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// bystander calls a healthy server until stop is called, which returns the
// number of calls and those that failed.
func (g *faultFixture) bystander() (stop func() (calls int, failed []outcome)) {
	end, done := make(chan struct{}), make(chan struct{})
	var calls int
	var failed []outcome
	go func() {
		defer close(done)
		for {
			if o := g.call("good", "echo", "", 0); !o.ok() {
				failed = append(failed, o)
			}
			calls++
			select {
			case <-end:
				return
			case <-time.After(25 * time.Millisecond):
			}
		}
	}()
	return func() (int, []outcome) {
		close(end)
		<-done
		return calls, failed
	}
}

// missing returns the acknowledged calls that have no record.
func (g *faultFixture) missing(t *testing.T) []string {
	t.Helper()
	recorded := map[string]bool{}
	for after := int64(0); ; {
		var o outcome
		g.eventually(t, "the call log", func() bool { // may take a moment after the database was unavailable
			o = g.get(fmt.Sprintf("/logs?after=%d&limit=1000", after))
			return o.status != http.StatusServiceUnavailable
		})
		var page []struct {
			Seq   int64           `json:"seq"`
			Input json.RawMessage `json:"input"`
		}
		if err := json.Unmarshal([]byte(o.body), &page); err != nil {
			t.Fatalf("the call log: %s: %v", o, err)
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			var input struct {
				Text string `json:"text"`
			}
			if json.Unmarshal(r.Input, &input) == nil { // it is a string if the input was truncated
				recorded[input.Text] = true
			}
			after = r.Seq
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var lost []string
	for _, text := range g.acked {
		if !recorded[text] {
			lost = append(lost, text)
		}
	}
	return lost
}

// usage is the resource usage of the gateway's process.
type usage struct {
	goroutines, descriptors int
	memory                  int // bytes resident
}

func (g *faultFixture) usage(t *testing.T) usage {
	t.Helper()
	res, err := faultClient.Get(g.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) int {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, name+" "); ok {
				n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
				if err != nil {
					t.Fatal(err)
				}
				return int(n)
			}
		}
		t.Fatalf("no metric %s", name)
		return 0
	}
	return usage{value("go_goroutines"), value("process_open_fds"), value("process_resident_memory_bytes")}
}

// awaitBaseline waits until the process uses about as many resources as before.
func (g *faultFixture) awaitBaseline(t *testing.T, before usage) {
	t.Helper()
	faultClient.CloseIdleConnections()
	ctx := ctxFor(t)
	for {
		now := g.usage(t)
		if now.goroutines <= before.goroutines+30 && now.descriptors <= before.descriptors+15 && now.memory <= before.memory+150<<20 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the process holds %+v, before the faults %+v", now, before)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// check checks the invariants after any fault.
func (g *faultFixture) check(t *testing.T, before usage, stop func() (int, []outcome)) {
	t.Helper()
	calls, failed := stop()
	if len(failed) > 0 {
		t.Errorf("%d of %d calls of a healthy server failed, such as %s", len(failed), calls, failed[0])
	}
	if lost := g.missing(t); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged calls have no record, such as %s", len(lost), len(g.acked), lost[0])
	}
	g.awaitBaseline(t, before)
}
