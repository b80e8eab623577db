package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"junctor/internal/guard"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/terminal"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// TestOptions configure the test of a server.
type TestOptions struct {
	Server  upstream.Config
	Dial    Dial
	Version string // of Junctor, sent to the server

	// Calls are tools to call and their arguments. Unless NoCalls is set, tools
	// that are marked read-only and have no required parameters are called,
	// too.
	Calls   []ToolCall
	NoCalls bool

	Timeout  time.Duration // of one step; zero means 30 s
	Progress func(step string)
}

// ToolCall is a call of a tool to test.
type ToolCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// TestReport is the result of testing one server.
type TestReport struct {
	Report
	Server   string          `json:"server"`             // the name under which it was tested
	Name     string          `json:"name,omitempty"`     // from its serverInfo
	Version  string          `json:"version,omitempty"`  // from its serverInfo
	Protocol string          `json:"protocol,omitempty"` // negotiated without a requested version
	Versions []VersionResult `json:"versions"`
	Tools    int             `json:"tools"`

	lastStderr []string // of the last program that failed to connect
}

// VersionResult is the result of requesting one version of the protocol.
type VersionResult struct {
	Asked  string  `json:"asked"`
	Agreed string  `json:"agreed,omitempty"`
	TookMs float64 `json:"tookMs"`
	Error  string  `json:"error,omitempty"`
}

// versions returns the versions of the protocol to test, in this order.
func versions() []string {
	return []string{mcp.Version20241105, mcp.Version20250326, mcp.Version20250618, mcp.Version20251125, mcp.Version20260728}
}

// Test tests a server for its author: in every version of the protocol, and
// with errors that clients make. It makes a new connection for each version,
// for which a program is started again.
func Test(ctx context.Context, o TestOptions) *TestReport {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	r := &TestReport{Server: o.Server.Name, Report: Report{progress: o.Progress}}
	if !r.handshakes(ctx, o) {
		return r
	}
	r.session(ctx, o)
	return r
}

// handshakes requests every version and reports whether one was negotiated.
func (r *TestReport) handshakes(ctx context.Context, o TestOptions) bool {
	silent, kill := 0, false
	for _, v := range versions() {
		r.begin("handshake " + v)
		s := VersionResult{Asked: v}
		begun := time.Now()
		c, err := r.connect(ctx, o, v)
		s.TookMs = millis(time.Since(begun))
		if err == nil {
			s.Agreed = c.client.Info().Protocol
			if kill {
				c.process.Kill()
			}
			// Do not wait again for a program that does not exit by itself.
			kill = c.close() >= c.exitTimeout && c.isProgram() || kill
		} else {
			s.Error = err.Error()
		}
		r.Versions = append(r.Versions, s)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errNoResponse) {
			silent++
		}
		if noOtherVersion(err) || silent == 2 {
			break // the other versions would fail, too
		}
	}
	agreed := slices.ContainsFunc(r.Versions, func(s VersionResult) bool { return s.Agreed != "" })
	for _, s := range r.Versions {
		f := Finding{Area: "handshake", Subject: s.Asked, TookMs: s.TookMs}
		switch {
		case s.Agreed == s.Asked:
			f.Severity, f.What = OK, "agreed"
		case s.Agreed != "":
			f.Severity, f.What = OK, "the server prefers "+s.Agreed
		case agreed:
			f.Severity, f.What = Info, "not supported: "+s.Error
		default:
			f.Severity, f.What = Problem, s.Error
		}
		r.Add(f)
	}
	if !agreed {
		do := "start the command in a terminal and check what it prints; a server must answer initialize (or server/discover) before anything else"
		if o.Server.Command == "" {
			do = "check that the server is running, that the address is its MCP endpoint (often /mcp), and whether it requires a sign-in or a header (-H)"
		}
		r.Add(Finding{Severity: Problem, Area: "handshake", What: "no protocol version could be negotiated", Do: do, Details: r.lastStderr})
	}
	return agreed
}

// session makes all other checks on one connection.
func (r *TestReport) session(ctx context.Context, o TestOptions) {
	r.begin("connect")
	c, err := r.connect(ctx, o, "")
	if err != nil {
		r.Add(Finding{Severity: Problem, Area: "handshake", What: "connecting without a requested version fails: " + err.Error()})
		return
	}
	info := c.client.Info()
	r.Name, r.Version, r.Protocol = info.Name, info.Version, info.Protocol
	if info.Name == "" || info.Version == "" {
		r.Add(Finding{Severity: Warning, Area: "handshake", What: "serverInfo lacks its name or version", Do: "set them: people see them, and bug reports need them"})
	}
	for _, f := range guard.InspectText("instructions", info.Instructions) {
		r.Add(Finding{Severity: Warning, Area: "safety", Subject: "instructions", What: f.String()})
	}

	r.begin("tools")
	defs := r.list(ctx, o, c, info)
	r.Tools = len(defs)
	r.names(defs)
	r.schemas(defs)
	r.adviseOnTools(defs)
	r.begin("providers")
	r.providers(defs)
	r.safety(defs)
	r.begin("lists")
	r.otherLists(ctx, o, c, info)
	r.begin("errors")
	r.errors(ctx, o, c, info)
	r.begin("calls")
	r.calls(ctx, o, c, defs)
	if o.Server.OpenAPI == "" { // ping does not reach the HTTP service
		r.begin("latency")
		r.latency(ctx, o, c, info)
	}
	r.begin("output")
	r.output(c)
}

// do sends one request with the timeout of a step.
func (c *connection) do(ctx context.Context, o TestOptions, method string, params any) (json.RawMessage, time.Duration, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	begun := time.Now()
	result, err := c.client.Do(ctx, tool.Request{Method: method, Params: raw})
	return result, time.Since(begun), err
}

// maxPages bounds a list whose server always returns another cursor.
const maxPages = 100

// list requests all pages of tools/list.
func (r *TestReport) list(ctx context.Context, o TestOptions, c *connection, info mcpclient.ServerInfo) []tool.Definition {
	if rawjson.Field(info.Capabilities, "tools") == nil {
		r.Add(Finding{Severity: Info, Area: "tools", What: "the server declares no tools", Do: `declare "tools": {} among the capabilities if it has any`})
		return nil
	}
	var entries []json.RawMessage
	var took time.Duration
	cursor := ""
	for page := 0; ; page++ {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		result, t, err := c.do(ctx, o, mcp.MethodToolsList, params)
		took += t
		if err != nil {
			r.Add(Finding{Severity: Problem, Area: "tools", What: "tools/list fails: " + err.Error()})
			return nil
		}
		list := rawjson.Field(result, "tools")
		if len(list) == 0 || list[0] != '[' {
			r.Add(Finding{Severity: Problem, Area: "tools", What: "the result of tools/list has no array \"tools\""})
			return nil
		}
		for e := range rawjson.Elements(list) {
			entries = append(entries, e)
		}
		next := rawjson.FieldString(result, "nextCursor")
		if next == "" {
			break
		}
		if next == cursor || page == maxPages {
			r.Add(Finding{Severity: Problem, Area: "tools", What: "the pages of tools/list never end", Do: "omit nextCursor on the last page"})
			break
		}
		cursor = next
	}
	defs := r.parse(o.Server.Name, entries)
	r.Add(Finding{Severity: OK, Area: "tools", What: fmt.Sprintf("%s listed", terminal.Count(len(defs), "tool")), TookMs: millis(took)})
	return defs
}

// otherLists requests the lists of prompts and resources that the server
// declares.
func (r *TestReport) otherLists(ctx context.Context, o TestOptions, c *connection, info mcpclient.ServerInfo) {
	for _, kind := range []string{"prompts", "resources"} {
		if rawjson.Field(info.Capabilities, kind) == nil {
			continue
		}
		result, took, err := c.do(ctx, o, kind+"/list", map[string]any{})
		switch {
		case err != nil:
			r.Add(Finding{Severity: Problem, Area: "lists", Subject: kind, What: "declared, but listing them fails: " + err.Error()})
		case len(rawjson.Field(result, kind)) == 0:
			r.Add(Finding{Severity: Problem, Area: "lists", Subject: kind, What: "the result has no array " + kind})
		default:
			n := 0
			for range rawjson.Elements(rawjson.Field(result, kind)) {
				n++
			}
			r.Add(Finding{Severity: OK, Area: "lists", Subject: kind, What: fmt.Sprintf("%d on the first page", n), TookMs: millis(took)})
		}
	}
}

// errors checks the responses to an unknown method and an unknown tool.
func (r *TestReport) errors(ctx context.Context, o TestOptions, c *connection, info mcpclient.ServerInfo) {
	_, _, err := c.do(ctx, o, "junctor/noSuchMethod", map[string]any{})
	refused, isRefusal := errors.AsType[*mcp.Error](err)
	switch {
	case isRefusal && refused.Code == mcp.CodeMethodNotFound:
		r.Add(Finding{Severity: OK, Area: "errors", What: "an unknown method is refused with -32601"})
	case isRefusal:
		r.Add(Finding{Severity: Warning, Area: "errors", What: fmt.Sprintf("an unknown method is refused with %d (%s)", refused.Code, refused.Message), Do: "JSON-RPC requires -32601"})
	case err == nil:
		r.Add(Finding{Severity: Problem, Area: "errors", What: "an unknown method is answered as if it existed"})
	default:
		r.Add(Finding{Severity: Problem, Area: "errors", What: "an unknown method is not answered: " + err.Error(), Do: "answer every request that has an id"})
	}
	if rawjson.Field(info.Capabilities, "tools") == nil {
		return
	}
	result, _, err := c.do(ctx, o, mcp.MethodToolsCall, map[string]any{"name": "junctor-no-such-tool", "arguments": map[string]any{}})
	_, isRefusal = errors.AsType[*mcp.Error](err)
	switch {
	case isRefusal:
		r.Add(Finding{Severity: OK, Area: "errors", What: "an unknown tool is refused"})
	case err == nil && string(rawjson.Field(result, "isError")) == "true":
		r.Add(Finding{Severity: OK, Area: "errors", What: "an unknown tool is a result with isError"})
	case err == nil:
		r.Add(Finding{Severity: Problem, Area: "errors", What: "an unknown tool is answered as if it existed"})
	default:
		r.Add(Finding{Severity: Problem, Area: "errors", What: "a call of an unknown tool is not answered: " + err.Error()})
	}
}

// latency measures the round trip of the simplest request.
func (r *TestReport) latency(ctx context.Context, o TestOptions, c *connection, info mcpclient.ServerInfo) {
	method := mcp.MethodPing
	if mcp.Stateless(info.Protocol) {
		method = mcp.MethodToolsList // this version has no ping
		if rawjson.Field(info.Capabilities, "tools") == nil {
			method = mcp.MethodDiscover
		}
	}
	const rounds = 9
	var took []time.Duration
	for range rounds {
		_, t, err := c.do(ctx, o, method, map[string]any{})
		if err != nil {
			r.Add(Finding{Severity: Problem, Area: "latency", What: method + " fails: " + err.Error()})
			return
		}
		took = append(took, t)
	}
	slices.Sort(took)
	r.Add(Finding{
		Severity: OK, Area: "latency", What: fmt.Sprintf("median of %d %s requests that took from %s to %s", rounds, method, round(took[0]), round(took[rounds-1])),
		TookMs: millis(took[rounds/2]),
	})
}

func round(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }

// output checks what a program wrote in addition to protocol messages, and
// whether it exits when its stdin is closed.
func (r *TestReport) output(c *connection) {
	ended := c.close()
	if !c.isProgram() {
		return
	}
	if n, last := c.stray(); n > 0 {
		r.Add(Finding{
			Severity: Warning, Area: "output", What: terminal.Count(n, "line") + " on stdout between protocol messages", Details: []string{last},
			Do: "write logs to stderr: stdout carries the protocol and nothing else",
		})
	} else {
		r.Add(Finding{Severity: OK, Area: "output", What: "stdout carries the protocol and nothing else"})
	}
	if lines := c.stderr(); len(lines) > 0 {
		r.Add(Finding{Severity: Info, Area: "output", What: "it wrote to stderr", Details: lines})
	}
	if ended >= c.exitTimeout {
		r.Add(Finding{Severity: Warning, Area: "output", What: "does not end when its stdin is closed", Do: "end when stdin ends: that is how clients stop a server", TookMs: millis(ended)})
	} else {
		r.Add(Finding{Severity: OK, Area: "output", What: "ends when its stdin is closed", TookMs: millis(ended)})
	}
}

// describe returns the message of an error for people.
func describe(err error) string {
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		return fmt.Sprintf("refused with %d: %s", e.Code, e.Message)
	}
	return strings.TrimSpace(err.Error())
}
