package control

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// askCapabilities lists the kinds of questions and the client capability that
// each requires.
var askCapabilities = []struct{ name, capability string }{
	{"elicitation", `{"form":{},"url":{}}`},
	{"sampling", `{}`},
	{"roots", `{}`},
}

// runWithQuestions runs a call during which the caller can be asked questions.
// The questions are stored in a record, whose changes are passed to send. If
// the record cannot be created, the call runs without questions.
func (c *Control) runWithQuestions(ctx context.Context, call *tool.Call, kinds []string, send func(CallAnswer), run func(context.Context) error) error {
	for _, k := range kinds {
		if !slices.ContainsFunc(askCapabilities, func(a struct{ name, capability string }) bool { return a.name == k }) {
			return &tool.Error{Kind: tool.InvalidArguments, Msg: `"ask" contains ` + tool.Shorten(k, 40) + `; use elicitation, sampling or roots`}
		}
	}
	if len(kinds) == 0 || c.Waiting == nil || c.Questions == nil {
		return run(ctx)
	}
	name := call.Tool
	if call.Server != "" {
		name = call.Server + ":" + call.Tool
	}
	record, err := c.Waiting.Start(ctx, waiting.StartOptions{Caller: call.Caller, Face: call.Face, Tool: name})
	if err != nil {
		return run(ctx)
	}
	defer func() { _ = record.Release(ctx) }() // if the store is unavailable, the record expires
	running, cancel := record.Context(ctx)
	defer cancel()
	call.Exchange.Capabilities = json.RawMessage(`{}`)
	for _, a := range askCapabilities {
		if slices.Contains(kinds, a.name) {
			call.Exchange.Capabilities = rawjson.SetField(call.Exchange.Capabilities, json.RawMessage(a.capability), a.name)
		}
	}
	call.Exchange.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		return c.ask(ctx, record, &call.Caller, method, params)
	}
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.sendQuestions(watching, record.ID(), send) })
	defer wg.Wait()
	defer stop()
	for opened := 0; ; opened++ {
		if err = run(running); opened == maxURLRounds || !c.openURLs(running, record, err) {
			return err
		}
	}
}

// maxURLRounds bounds how often a call is retried after a person has opened
// the URLs that the server required.
const maxURLRounds = 3

// openURLs asks the person to open the URLs that a server of the handshake era
// requires before a call, and reports whether all were opened.
func (c *Control) openURLs(ctx context.Context, record *waiting.Call, err error) bool {
	wire, ok := errors.AsType[*mcp.Error](err)
	if !ok || wire.Code != mcp.CodeURLElicitation {
		return false
	}
	n := 0
	for e := range rawjson.Elements(rawjson.Field(wire.Data, "elicitations")) {
		params := rawjson.SetField(rawjson.SetField(e, json.RawMessage(`"url"`), "mode"), json.RawMessage(`true`), "_meta", MetaRetry)
		answer, err := c.ask(ctx, record, nil, mcp.MethodElicit, params)
		if err != nil || rawjson.FieldString(answer, "action") != "accept" {
			return false
		}
		n++
	}
	return n > 0
}

// MetaRetry is the key in _meta of an elicitation after which the call is
// retried. The person confirms when the steps at the URL are completed.
const MetaRetry = "junctor/retry"

// ask sends a question of a server to the person at the client and returns the
// answer.
func (c *Control) ask(ctx context.Context, record *waiting.Call, caller *tool.Caller, method string, params json.RawMessage) (json.RawMessage, error) {
	var sample func(context.Context) (json.RawMessage, error)
	var err error
	switch method {
	case mcp.MethodElicit:
		err = c.Questions.CheckElicitation(params)
	case mcp.MethodSample:
		sample, err = c.Questions.Sampling(caller, params)
	}
	if err != nil {
		return nil, err
	}
	in, err := record.Ask(ctx, waiting.Input{Kind: method, Params: params})
	if err != nil {
		return nil, err
	}
	if sample == nil {
		return in.Answer, nil
	}
	if rawjson.FieldString(in.Answer, "action") != "accept" {
		return nil, &mcp.Error{Code: mcp.CodeRejected, Message: "the user did not allow the use of the model"}
	}
	return sample(ctx)
}

// sendQuestions sends the questions of a record when they are asked and when
// they are answered. It reports all questions as answered before it returns,
// because the call may end before its last answer is read here.
func (c *Control) sendQuestions(ctx context.Context, id string, send func(CallAnswer)) {
	open := map[string]bool{}
	answered := func(input string) {
		send(CallAnswer{Type: "answered", Call: id, Input: &waiting.Input{ID: input}})
	}
	defer func() {
		for input := range open {
			answered(input)
		}
	}()
	for version := int64(0); ; {
		r, err := c.Waiting.Await(ctx, id, version)
		if err != nil || ctx.Err() != nil || r.Status.Final() {
			return
		}
		version = r.Version
		shown := r.Public()
		still := map[string]bool{}
		for i, in := range shown.Inputs {
			if r.Inputs[i].Answer != nil {
				continue
			}
			still[in.ID] = true
			if !open[in.ID] {
				send(CallAnswer{Type: "question", Call: id, Input: &shown.Inputs[i]})
			}
		}
		for old := range open {
			if !still[old] {
				answered(old)
			}
		}
		open = still
	}
}
