package discovery

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// wireServer is a server whose messages are scripted. It responds itself to
// requests that the gateway sends for its own purposes.
type wireServer struct {
	modern bool
	info   string // its description in JSON

	mu      sync.Mutex
	out     io.Writer
	arrived chan string
	wanted  string // the method that the script expects; "" for a response
	scripts bool   // the script is waiting
	lastID  json.RawMessage
}

const wireTool = `{"name":"echo","title":"Echo \u00e9","description":"says it again","inputSchema":{ "type":"object" },"outputSchema":{"type":"object"},"icons":[{"src":"data:,"}],"annotations":{"title":"E","readOnlyHint":true},"_meta":{"vendor/x":1.50},"vendor":null}`

func (s *wireServer) dial(context.Context) (mcpclient.Transport, error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go s.serve(inR, outW)
	return mcpclient.OverLink(mcp.NewStream(outR, inW, mcp.StreamOptions{})), nil
}

func (s *wireServer) serve(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		raw := json.RawMessage(line)
		method, id := rawjson.FieldString(raw, "method"), rawjson.Field(raw, "id")
		s.mu.Lock()
		if s.scripts && method == s.wanted && s.ofScript(line, method, id) {
			s.scripts, s.out = false, out
			if method != "" {
				s.lastID = id
			}
			s.mu.Unlock()
			s.arrived <- line
			continue
		}
		s.mu.Unlock()
		if id != nil && method != "" {
			s.reply(out, method, string(id))
		}
	}
}

// ofScript reports whether a message belongs to the script. The gateway's own
// requests lack the members that all requests in the scripts have.
func (s *wireServer) ofScript(line, method string, id json.RawMessage) bool {
	switch {
	case method == "" || id == nil:
		return true
	case s.modern:
		return strings.Contains(line, `"vendor/x"`)
	}
	return strings.Contains(line, `"_meta"`) || strings.Contains(line, `"cursor"`)
}

// reply responds to a request that is not in the script.
func (s *wireServer) reply(out io.Writer, method, id string) {
	answer := `"error":{"code":-32601,"message":"no"}`
	switch method {
	case "server/discover", "initialize":
		if s.modern == (method == "server/discover") {
			answer = `"result":` + s.info
		}
	case "tools/list":
		answer = `"result":{"tools":[` + wireTool + `],"resultType":"complete","ttlMs":1000,"cacheScope":"public"}`
	case "subscriptions/listen":
		return // remains open
	}
	_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":`+id+`,`+answer+"}\n") // the gateway may have disconnected
}

// want sets the message that the script expects.
func (s *wireServer) want(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.scripts = method, true
}

var (
	gatewayID    = regexp.MustCompile(`^\{"jsonrpc":"2.0","id":\d+`)
	gatewayToken = regexp.MustCompile(`"(progressToken|requestId)":\d+`)
)

// TestWire replays the transcripts of the transparent view: what a client
// sends ("> "), what the server receives ("» "), what the server sends ("« ")
// and what the client receives ("< "), byte for byte. Only ids and progress
// tokens of the gateway are replaced by #.
func TestWire(t *testing.T) {
	for name, s := range map[string]*wireServer{
		"2025-11-25": {info: `{"protocolVersion":"2025-11-25","capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"experimental":{"vendor/x":{ "n":1.50 }}},"serverInfo":{"name":"wire","version":"1","icons":[{"src":"data:,"}]},"instructions":"be \u00e9xact"}`},
		"2026-07-28": {modern: true, info: `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{},"vendor/x":{ "n":1.50 }}},"serverInfo":{"name":"wire","version":"1"},"instructions":"be \u00e9xact","ttlMs":60000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"wire","version":"1"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", "wire", name+".txt")
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s.arrived = make(chan string, 1)
			got := playWire(t, s, string(script))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(script) {
				t.Errorf("%s differs; run with -update and look at the difference.\n%s", file, got)
			}
		})
	}
}

// wireFace returns functions that send and receive the lines of a client of
// the transparent view.
func wireFace(t *testing.T, s *wireServer) (send func(string), receive func() string) {
	f := newFixture(t, map[string]*testServer{"wire": nil}, func(f *fixture, c *[]upstream.Config) { f.dialers["wire"] = s.dial })
	withTasks(t, f)
	eventually(t, "the tools are known", func() bool { return f.catalog.Snapshot().Len() == 1 })
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(tool.WithCaller(context.Background(), tool.Caller{ID: "key:t", Name: "t"}))
	t.Cleanup(cancel)
	go func() { _ = f.ServeStream(ctx, View{Server: "wire"}, inR, outW) }()
	lines := make(chan string, 100)
	go func() {
		r := bufio.NewScanner(outR)
		r.Buffer(nil, 1<<20)
		for r.Scan() {
			lines <- r.Text()
		}
	}()
	return func(line string) {
			if _, err := io.WriteString(inW, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}, func() string {
			select {
			case line := <-lines:
				return line
			case <-time.After(time.Minute):
				t.Fatal("nothing arrives at the client")
				return ""
			}
		}
}

func playWire(t *testing.T, s *wireServer, script string) string {
	send, receive := wireFace(t, s)
	var b strings.Builder
	method, asked := "", false
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		kind, text, _ := strings.Cut(line, " ")
		switch kind {
		case ">":
			if method = rawjson.FieldString(json.RawMessage(text), "method"); method == "" && !asked {
				t.Fatalf("a response to nothing: %s", line)
			}
			if method != mcp.MethodListen { // one of the gateway's own serves all its clients
				s.want(method)
			}
			send(text)
		case "»":
			select {
			case got := <-s.arrived:
				line = "» " + gatewayToken.ReplaceAllString(gatewayID.ReplaceAllString(got, `{"jsonrpc":"2.0","id":#`), `"$1":#`)
			case <-time.After(time.Minute):
				t.Fatalf("%s does not arrive at the server; so far\n%s", method, b.String())
			}
		case "«":
			s.mu.Lock()
			out, id := s.out, string(s.lastID)
			s.mu.Unlock()
			own := strings.Replace(text, `"id":#`, `"id":`+id, 1)
			own = strings.Replace(own, `"progressToken":#`, `"progressToken":`+id, 1)
			asked = rawjson.FieldString(json.RawMessage(own), "method") != "" && rawjson.Field(json.RawMessage(own), "id") != nil
			if asked {
				s.want("")
			}
			if _, err := io.WriteString(out, own+"\n"); err != nil {
				t.Fatal(err)
			}
		case "<":
			line = "< " + receive()
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
