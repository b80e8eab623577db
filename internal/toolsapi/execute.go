package toolsapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"junctor/internal/httperr"
	"junctor/internal/provider"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// face is the name of this API in call records.
const face = "tools"

// Limits of one request with parallel calls.
const (
	maxCalls    = 128
	maxParallel = 16
)

type executeBody struct {
	Provider string          `json:"provider"`
	Call     json.RawMessage `json:"call"`
	Server   string          `json:"server"`
	Wait     *bool           `json:"wait"` // false: respond immediately and store the result
}

// execute executes a model's calls and responds in the provider's format.
func (a *API) execute(w http.ResponseWriter, r *http.Request) error {
	var body executeBody
	if err := read(r, &body); err != nil {
		return err
	}
	call := bytes.TrimSpace(body.Call)
	switch {
	case len(call) == 0 || string(call) == "null":
		return &tool.Error{Kind: tool.InvalidRequest, Msg: "call is missing; send {\"provider\": …, \"call\": the call object as the provider's API returned it}"}
	case call[0] == '[' && body.Wait != nil && !*body.Wait:
		return &tool.Error{Kind: tool.InvalidRequest, Msg: `"wait": false accepts one call; send a separate request for each`}
	case call[0] == '[':
		return a.executeAll(w, r, body)
	default:
		return a.executeOne(w, r, body)
	}
}

// executeOne executes a single call; its error is the error of the request.
func (a *API) executeOne(w http.ResponseWriter, r *http.Request, body executeBody) error {
	name, call, err := provider.ReadCall(body.Provider, body.Call)
	if err != nil {
		return err
	}
	if body.Wait != nil && !*body.Wait {
		return a.executeAsync(w, r, body.Server, call)
	}
	result, err := a.run(r.Context(), body.Server, call, httperr.RequestID(r.Context()), tool.Exchange{})
	if err != nil {
		return err
	}
	out, err := provider.FormatResult(name, call, provider.ReadResult(result))
	if err == nil {
		writeBody(w, http.StatusOK, append(out, '\n'))
	}
	return err
}

// executeAll executes parallel calls. Each call has its own result, even if it
// fails, because a conversation needs one for every call.
func (a *API) executeAll(w http.ResponseWriter, r *http.Request, body executeBody) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(body.Call, &raw); err != nil {
		return &tool.Error{Kind: tool.ParseFailed, Msg: "call is not JSON: " + plain(err)}
	}
	if len(raw) > maxCalls {
		return &tool.Error{Kind: tool.InvalidRequest, Msg: fmt.Sprintf("%d calls in one request; send at most %d", len(raw), maxCalls)}
	}
	calls, err := readCalls(body.Provider, raw)
	if err != nil {
		return err
	}
	id := httperr.RequestID(r.Context())
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i := range calls {
		if calls[i].err != nil {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c := &calls[i]
			c.result, c.err = a.run(r.Context(), body.Server, c.call, fmt.Sprintf("%s.%d", id, i+1), tool.Exchange{})
		})
	}
	wg.Wait()
	out := []byte{'['}
	for _, c := range calls {
		content := provider.ReadResult(c.result)
		if c.err != nil {
			content = provider.ErrorContent(c.err)
		}
		answer, err := provider.FormatResult(c.provider, c.call, content)
		if err != nil {
			return err
		}
		out = rawjson.AppendComma(out)
		out = append(out, answer...)
	}
	writeBody(w, http.StatusOK, append(out, "]\n"...))
	return nil
}

type parallelCall struct {
	provider string
	call     provider.Call
	result   tool.Result
	err      error
}

// readCalls parses the calls of an array. A call that cannot be parsed gets an
// error in the format of the others; if none can be parsed, the request is
// invalid.
func readCalls(name string, raw []json.RawMessage) ([]parallelCall, error) {
	if name != "" {
		var err error
		if name, err = provider.Lookup(name); err != nil {
			return nil, err
		}
	}
	calls := make([]parallelCall, len(raw))
	form := name
	var failed error
	for i, r := range raw {
		c := &calls[i]
		if c.provider, c.call, c.err = provider.ReadCall(name, r); c.err != nil {
			failed = c.err
			c.call.ID = idOf(r)
		} else if form == "" {
			form = c.provider
		}
	}
	if form == "" && failed != nil {
		return nil, failed
	}
	for i := range calls {
		if calls[i].err != nil {
			calls[i].provider = form
		}
	}
	return calls, nil
}

// idOf returns the id of a call that could not be parsed, so that its error can
// be matched to it.
func idOf(raw json.RawMessage) string {
	var ids struct {
		CallID    string `json:"call_id"`
		ToolUseID string `json:"toolUseId"`
		ID        string `json:"id"`
	}
	_ = json.Unmarshal(raw, &ids) // an error means that there is no id
	return cmp.Or(ids.CallID, ids.ToolUseID, ids.ID)
}

// run executes one call.
func (a *API) run(ctx context.Context, server string, call provider.Call, id string, ex tool.Exchange) (tool.Result, error) {
	c := tool.Call{RequestID: id, Face: face, Caller: tool.CallerFrom(ctx), Exchange: ex}
	name, def := a.resolve(&c.Caller, server, call.Name)
	if def == nil {
		var which []string
		if server != "" {
			which = []string{server}
		}
		a.Tools.Await(ctx, &c.Caller, which...)
		name, def = a.resolve(&c.Caller, server, call.Name)
	}
	if def == nil { // the executor reports the unknown name
		def = &tool.Definition{InputSchema: json.RawMessage("{}")}
	}
	c.Server, c.Tool = name.Server, name.Tool
	var err error
	if c.Arguments, err = provider.Repair(*def, call.Arguments); err != nil {
		return tool.Result{}, err
	}
	return a.Executor.Call(ctx, c)
}

// resolve returns the tool that a model called, with its definition. If the
// caller may use no such tool, the definition is nil and the name is derived
// from called, so that the result does not reveal whether the tool exists.
func (a *API) resolve(caller *tool.Caller, server, called string) (tool.Name, *tool.Definition) {
	snap, tools := a.Tools.ProviderTools()
	if n, ok := tools.Resolve(server, called); ok {
		if e := snap.Lookup(n); e.UsableBy(caller) {
			return n, &e.Definition
		}
	}
	e, err := snap.Resolve(caller, server, called)
	if err == nil {
		return e.Name, &e.Definition
	}
	if server == "" && tool.KindOf(err) == tool.ToolNotFound {
		prefix, rest, _ := strings.Cut(strings.Replace(called, "__", ":", 1), ":")
		if prefix != "" && rest != "" && (snap.Server(prefix) == nil || !caller.MaySee(prefix)) {
			return tool.Name{Server: prefix, Tool: rest}, nil
		}
	}
	return tool.Name{Server: server, Tool: called}, nil
}

type callToolBody struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// callTool executes a tool by its own name; arguments and result are passed
// unchanged.
func (a *API) callTool(w http.ResponseWriter, r *http.Request) error {
	var body callToolBody
	if err := read(r, &body); err != nil {
		return err
	}
	if body.Tool == "" {
		return &tool.Error{Kind: tool.InvalidRequest, Msg: `tool is missing; send {"server": …, "tool": …, "arguments": {…}}`}
	}
	if args := bytes.TrimSpace(body.Arguments); len(args) == 0 || args[0] != '{' { // nothing, or an object encoded in a string
		var err error
		if body.Arguments, err = provider.Repair(tool.Definition{}, args); err != nil {
			return err
		}
	}
	result, err := a.Executor.Call(r.Context(), tool.Call{
		RequestID: httperr.RequestID(r.Context()), Face: face, Origin: tool.ByClient, Caller: tool.CallerFrom(r.Context()),
		Server: body.Server, Tool: body.Tool, Arguments: body.Arguments,
	})
	if err != nil {
		return err
	}
	out := append([]byte(`{"result":`), result.Raw...)
	writeBody(w, http.StatusOK, append(out, "}\n"...))
	return nil
}
