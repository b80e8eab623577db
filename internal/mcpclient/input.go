package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

const (
	// maxRounds bounds how often one call may require more input.
	maxRounds = 10
	// maxInputs bounds the questions of one round.
	maxInputs = 32
	// maxTaskInputs bounds the questions of one task, which may send them one
	// by one.
	maxTaskInputs = maxRounds * maxInputs
)

// resolveInput has the caller answer the questions of an input_required result
// and retries the call with the answers, until it is complete.
func (c *Client) resolveInput(ctx context.Context, r tool.Request, result json.RawMessage) (json.RawMessage, error) {
	for round := 0; ; round++ {
		if !mcp.MayNeedInput(r.Method) || rawjson.FieldString(rawjson.TrustedField(result, "resultType")) != "input_required" {
			return result, nil
		}
		if round == maxRounds {
			return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("the server asked for input more than %d times and did not finish", maxRounds)}
		}
		responses, err := c.askInputs(ctx, r, rawjson.Field(result, "inputRequests"), map[string]bool{})
		if err != nil {
			return nil, err
		}
		params := rawjson.DeleteField(rawjson.DeleteField(r.Params, "inputResponses"), "requestState")
		if responses != nil {
			params = rawjson.SetField(params, responses, "inputResponses")
		}
		if state := rawjson.Field(result, "requestState"); state != nil {
			params = rawjson.SetField(params, state, "requestState")
		}
		if result, err = c.round(ctx, r, params); err != nil {
			return nil, err
		}
	}
}

// askInputs sends the questions to the caller concurrently and returns the
// answers by key, or nil if there was no question. It skips keys in answered,
// and adds the newly answered ones.
func (c *Client) askInputs(ctx context.Context, r tool.Request, requests json.RawMessage, answered map[string]bool) (json.RawMessage, error) {
	type input struct {
		key    string
		method string
		params json.RawMessage
		result json.RawMessage
		err    error
	}
	var inputs []*input
	for key, request := range rawjson.Members(requests) {
		switch {
		case answered[key]:
			continue
		case len(inputs) == maxInputs:
			return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("the server asks more than %d questions at once", maxInputs)}
		case len(answered)+len(inputs) == maxTaskInputs:
			return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("the server asks more than %d questions for one task", maxTaskInputs)}
		}
		in := &input{key: key, method: rawjson.FieldString(request, "method"), params: rawjson.Field(request, "params")}
		if r.Exchange.Ask == nil || !c.opts.Capabilities.allow(in.method) {
			return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf(
				"the server needs input from the caller (%s), and this caller cannot be asked", printable(in.method))}
		}
		inputs = append(inputs, in)
	}
	if len(inputs) == 0 {
		return nil, nil
	}
	var wg sync.WaitGroup
	for _, in := range inputs {
		wg.Go(func() { in.result, in.err = r.Exchange.Ask(ctx, in.method, in.params) })
	}
	wg.Wait()
	responses := []byte{'{'}
	for i, in := range inputs {
		if in.err != nil {
			return nil, c.callError(ctx, fmt.Errorf("answer the server's %s: %w", in.method, in.err))
		}
		if i > 0 {
			responses = append(responses, ',')
		}
		responses = append(rawjson.AppendQuoted(responses, in.key), ':')
		responses = append(responses, in.result...)
		answered[in.key] = true
	}
	return append(responses, '}'), nil
}

// printable replaces control characters in text from the server by spaces and
// shortens it, for use in messages.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
