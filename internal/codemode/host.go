package codemode

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/results"
	"junctor/internal/script"
	"junctor/internal/tool"
)

// call executes a call that the script awaits.
func (run *scriptRun) call(ctx context.Context, name string, argument json.RawMessage) (json.RawMessage, error) {
	switch name {
	case "call":
		return run.callTool(ctx, argument)
	case "search":
		return run.search(ctx, argument)
	case "describe":
		return run.describe(argument)
	}
	return nil, fmt.Errorf("no function %q", name)
}

func (run *scriptRun) callTool(ctx context.Context, argument json.RawMessage) (json.RawMessage, error) {
	var c struct {
		Name      any             `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(argument, &c); err != nil {
		return nil, err
	}
	name, ok := c.Name.(string)
	if !ok || name == "" {
		return nil, &script.Exception{Code: string(tool.InvalidArguments), Message: `tools.call takes a name such as "server:tool" and an object`}
	}
	name = run.resolve(name)
	n := run.begin(name)
	server, bare := split(name)
	result, err := run.s.opts.Calls.Call(ctx, tool.Call{
		Face: run.r.Face, Caller: run.r.Caller, Session: run.r.Session, Server: server, Tool: bare, Arguments: c.Arguments, Exchange: withoutWaiting(ctx, run.r.Exchange),
	})
	if err == nil && result.IsError {
		err = &tool.Error{Kind: tool.ExecutionFailed, Msg: tool.Shorten(results.Text(results.Value(result.Raw)), 4000)}
	}
	run.end(n, err)
	if err != nil {
		return nil, exception(err)
	}
	return results.Value(result.Raw), nil
}

// exception converts an error to the exception that a script catches.
func exception(err error) error {
	e := tool.AsError(err)
	return &script.Exception{Code: string(e.Kind), Message: e.Msg, Details: e.Details}
}

// withoutWaiting returns the exchange for a call of the script. The time in
// which a person is asked does not count against the script's time.
func withoutWaiting(ctx context.Context, e tool.Exchange) tool.Exchange {
	if ask := e.Ask; ask != nil {
		e.Ask = func(c context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			defer script.Pause(ctx)()
			return ask(c, method, params)
		}
	}
	e.AwaitPerson = func() func() { return script.Pause(ctx) }
	e.PassInput = false // the script waits for the result
	return e
}

// resolve returns the name of a tool that a script wrote as identifiers:
// tools.my_server.do_it may be my-server:do-it.
func (run *scriptRun) resolve(name string) string {
	server, bare, ok := strings.Cut(name, ":")
	snap := run.s.opts.Tools.Snapshot()
	if !ok || snap.Lookup(tool.Name{Server: server, Tool: bare}) != nil {
		return name
	}
	for _, s := range snap.Servers() {
		if s.Name != server && identifier(s.Name) != server {
			continue
		}
		for _, e := range s.Tools {
			if (e.Name.Tool == bare || identifier(e.Name.Tool) == bare) && e.UsableBy(&run.r.Caller) {
				return e.Name.String()
			}
		}
	}
	return name
}

// split returns the parts of server:tool; a name may have no server.
func split(name string) (server, bare string) {
	if server, bare, ok := strings.Cut(name, ":"); ok {
		return server, bare
	}
	return "", name
}

// identifier replaces the characters of a name that are not allowed in
// identifiers with underscores.
func identifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '$' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// begin records a call, unless maxTraced calls have been recorded, and returns
// its number.
func (run *scriptRun) begin(name string) int {
	run.mu.Lock()
	c := Call{Number: len(run.calls) + 1, Tool: name, Start: millis(time.Since(run.begun)), begun: time.Now()}
	if len(run.calls) < maxTraced {
		run.calls = append(run.calls, c)
	}
	run.mu.Unlock()
	run.report(c)
	return c.Number
}

func (run *scriptRun) end(number int, err error) {
	run.mu.Lock()
	if number > len(run.calls) {
		run.mu.Unlock()
		return
	}
	c := &run.calls[number-1]
	c.Took, c.Ended, c.begun = millis(time.Since(c.begun)), true, time.Time{}
	if err != nil {
		c.Error = string(tool.KindOf(err))
	}
	ended := *c
	run.mu.Unlock()
	run.report(ended)
}

func (run *scriptRun) report(c Call) {
	if run.r.Progress != nil {
		run.r.Progress(c)
	}
}

// Found is one tool that a script's search found.
type Found struct {
	Name      string `json:"name"`
	Summary   string `json:"summary,omitempty"`
	Signature string `json:"signature"`
}

const (
	searchLimit    = 10
	maxSearchLimit = 50
	summaryLength  = 120
	maxDescribed   = 50
)

func (run *scriptRun) search(ctx context.Context, argument json.RawMessage) (json.RawMessage, error) {
	var q struct {
		Query string  `json:"query"`
		Limit float64 `json:"limit"`
	}
	if err := json.Unmarshal(argument, &q); err != nil || q.Query == "" {
		return nil, &script.Exception{Code: string(tool.InvalidArguments), Message: "tools.search takes a text and a limit"}
	}
	limit := searchLimit
	if q.Limit >= 1 {
		limit = int(min(q.Limit, maxSearchLimit))
	}
	entries, err := run.s.opts.Tools.Find(ctx, &run.r.Caller, q.Query, limit)
	if err != nil {
		return nil, exception(err)
	}
	found := make([]Found, 0, len(entries))
	for _, e := range entries {
		found = append(found, Found{Name: e.Name.String(), Summary: e.Summary(summaryLength), Signature: Signature(e)})
	}
	return json.Marshal(found)
}

func (run *scriptRun) describe(argument json.RawMessage) (json.RawMessage, error) {
	var q struct {
		Names []string `json:"names"`
	}
	if err := json.Unmarshal(argument, &q); err != nil || len(q.Names) == 0 || len(q.Names) > maxDescribed {
		return nil, &script.Exception{Code: string(tool.InvalidArguments), Message: fmt.Sprintf("tools.describe takes 1 to %d names", maxDescribed)}
	}
	snap := run.s.opts.Tools.Snapshot()
	var entries []*catalog.Entry
	for _, name := range q.Names {
		server, bare := split(run.resolve(name))
		e, err := snap.Resolve(&run.r.Caller, server, bare)
		if err != nil {
			return nil, exception(err)
		}
		entries = append(entries, e)
	}
	return json.Marshal(declare(entries))
}
