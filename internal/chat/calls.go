package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/mcp"
	"junctor/internal/provider"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// errorResult returns err as a tool result for the model.
func errorResult(c *llm.ToolCall, err error) *llm.ToolResult {
	return llm.TextResult(c, provider.ErrorContent(err).Text(), true)
}

// runCalls executes the calls of one step concurrently, up to the limit, and
// returns exactly one result for each, in the order of the calls.
func (s *Session) runCalls(ctx context.Context, t *turn, calls []*llm.ToolCall, o requestTools) []*llm.ToolResult {
	results := make([]*llm.ToolResult, len(calls))
	first := t.begun
	t.begun += len(calls)
	slots := make(chan struct{}, s.host.config().ParallelCalls)
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
			}
			results[i] = s.runCall(ctx, t, c, o, first+i)
		})
	}
	wg.Wait()
	return results
}

// runCall executes one call; order is its position among the calls of the reply.
func (s *Session) runCall(ctx context.Context, t *turn, c *llm.ToolCall, o requestTools, order int) *llm.ToolResult {
	start := time.Now()
	shown := c.Name
	if c.Tool != (tool.Name{}) {
		shown = c.Tool.String()
	}
	target := c
	var result *llm.ToolResult
	switch {
	case ctx.Err() != nil:
		return cancelled(ctx, c)
	case c.Malformed != "":
		result = malformed(c, o)
	case c.Tool == (tool.Name{}):
		result = s.unknown(t, c, o)
	case c.Tool.Server == metaServer && o.meta:
		result, target = s.host.metaCall(&t.caller, s.preferences(), c)
	}
	if target != nil && target != c {
		shown = target.Tool.String()
	}
	args := c.Arguments
	if target != nil {
		args = target.Arguments
	}
	s.emit(wire.TypeStatus, wire.StatusPayload{State: "processing", Tool: shown, Message: "Running " + shown, Data: &wire.StatusData{CallID: c.ID, Order: order, Arguments: args}})
	if result == nil {
		result = s.execute(ctx, t, c, target)
	}
	result.Content = cutResult(result.Content, s.host.config().MaxResultBytes)
	result.TookMs = max(time.Since(start).Milliseconds(), 1) // 0 means unknown
	message := shown + " is done"
	if result.IsError {
		message = shown + " failed"
	}
	s.emit(wire.TypeStatus, wire.StatusPayload{State: "complete", Tool: shown, Message: message, Data: &wire.StatusData{
		CallID: c.ID, Result: result.Content, IsError: result.IsError, TookMs: result.TookMs}})
	return result
}

func cancelled(ctx context.Context, c *llm.ToolCall) *llm.ToolResult {
	text := "cancelled: the person stopped the reply before this call was finished"
	if errors.Is(context.Cause(ctx), tool.ErrStopping) {
		text = "cancelled: the gateway was stopped before this call was finished"
	}
	return llm.TextResult(c, text, true)
}

// malformed returns an error result that tells the model what is wrong with a
// call that could not be parsed, and the correct form.
func malformed(c *llm.ToolCall, o requestTools) *llm.ToolResult {
	text := fmt.Sprintf("INVALID_ARGUMENTS: the call could not be read: %s. What came: %s", c.Problem, c.Malformed)
	for _, d := range o.tools.Definitions() {
		if d.Name == c.Tool {
			text += "\nThe arguments must fit this schema: " + string(d.InputSchema)
		}
	}
	return llm.TextResult(c, text, true)
}

// unknown returns an error result for a call of a tool that the request did not
// declare.
func (s *Session) unknown(t *turn, c *llm.ToolCall, o requestTools) *llm.ToolResult {
	text := fmt.Sprintf("TOOL_NOT_FOUND: there is no tool %q.", c.Name)
	near := slices.DeleteFunc(s.host.Tools.Snapshot().Nearest(&t.caller, strings.Replace(c.Name, "__", ":", 1), 5), func(name string) bool {
		n, err := tool.ParseName(name)
		return err != nil || !o.prefs.Uses(n.Server)
	})
	switch {
	case o.meta && len(near) > 0:
		text += fmt.Sprintf(" Tools are run with %s, for example with \"tool\": %q.", o.tools.Declared(metaExecute), near[0])
	case o.meta:
		text += fmt.Sprintf(" Find the right one with %s, and run it with %s.", o.tools.Declared(metaSearch), o.tools.Declared(metaExecute))
	case len(near) > 0:
		var names []string
		for _, n := range near {
			if parsed, err := tool.ParseName(n); err == nil {
				names = append(names, o.tools.Declared(parsed))
			}
		}
		text += " Did you mean " + strings.Join(names, ", ") + "?"
	default:
		text += " Use only the tools that you were given, or answer without one."
	}
	return llm.TextResult(c, text, true)
}

// execute executes a call. If the server first requires the user to open a URL,
// the call is retried afterwards.
func (s *Session) execute(ctx context.Context, t *turn, c, target *llm.ToolCall) *llm.ToolResult {
	approved := "" // the tool and its definition, so that the user is asked once
	approve := func(ctx context.Context, n tool.Name, args json.RawMessage) (bool, error) {
		subject := s.host.Approvals.Subject(n)
		if subject == approved {
			return true, nil
		}
		yes, err := s.approve(ctx, t, c, n, args)
		if yes {
			approved = subject
		}
		return yes, err
	}
	res, err := s.dispatch(ctx, t, c, target, approve)
	if urls := requiredURLs(err, questionOf(c, target)); urls != nil {
		// A call that reached the server has been approved, by the user or by
		// an administrator. A required sign-in may be reported before that.
		if approved == "" && mcp.SignInRequired(err) == nil {
			approved = s.host.Approvals.Subject(target.Tool)
		}
		if s.openURLs(ctx, t, urls) {
			res, err = s.dispatch(ctx, t, c, target, approve)
		}
	}
	switch {
	case ctx.Err() != nil:
		return cancelled(ctx, c)
	case err != nil:
		result := errorResult(c, err)
		if reason := s.denialReason(t, c); reason != "" && tool.KindOf(err) == tool.Denied {
			result = llm.TextResult(c, provider.ErrorContent(err).Text()+". The reason given: "+reason, true)
		}
		return result
	}
	return &llm.ToolResult{CallID: c.ID, Name: c.Name, Content: res.Raw, IsError: res.IsError}
}

// dispatch passes a call to the executor.
func (s *Session) dispatch(ctx context.Context, t *turn, c, target *llm.ToolCall, approve func(context.Context, tool.Name, json.RawMessage) (bool, error)) (tool.Result, error) {
	id := t.callID()
	return s.host.Executor.Call(ctx, tool.Call{
		RequestID: id, Face: "chat", Caller: t.caller, Session: s.id,
		Server: target.Tool.Server, Tool: target.Tool.Tool, Arguments: target.Arguments,
		Meta: rawjson.MarshalOrNull(map[string]string{"progressToken": id}), // servers report progress only to a token
		Exchange: tool.Exchange{
			Notify: func(method string, params json.RawMessage) {
				if method == mcp.MethodProgress {
					s.progress(c, target, params)
				}
			},
			TaskStatus:     func(status tool.TaskStatus) { s.progress(c, target, status.Progress()) },
			Approve:        approve,
			ApproveInInbox: true,
			Ask: func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
				return s.serverAsks(ctx, t, questionOf(c, target), method, params)
			},
			Capabilities: clientCapabilities,
		},
	})
}

// denialReason returns the user's reason for denying a call, or "".
func (s *Session) denialReason(t *turn, c *llm.ToolCall) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.reasons[c.ID]
}

func (s *Session) progress(c, target *llm.ToolCall, params json.RawMessage) {
	var p struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(params, &p) // a notification that cannot be parsed still counts as progress
	if p.Message == "" {
		p.Message = "Running " + target.Tool.String()
	}
	s.emit(wire.TypeStatus, wire.StatusPayload{State: "processing", Tool: target.Tool.String(), Message: tool.Shorten(p.Message, 500),
		Data: &wire.StatusData{CallID: c.ID, Progress: params}})
}

// maxImageBytes bounds the base64 data of the images in one result.
const maxImageBytes = 4 << 20

// cutResult truncates a result to about max bytes of text, with a note that
// says so and how to get the rest. It always returns a CallToolResult.
func cutResult(raw json.RawMessage, max int) json.RawMessage {
	if len(raw) <= max {
		return raw
	}
	var r map[string]json.RawMessage
	var blocks []json.RawMessage
	if json.Unmarshal(raw, &r) != nil || json.Unmarshal(r["content"], &blocks) != nil && len(r["content"]) > 0 {
		return cutText(string(raw), max, len(raw))
	}
	left, images, changed := max, maxImageBytes, false
	for i, b := range blocks {
		var head struct {
			Type string `json:"type"`
			Text string `json:"text"`
			Data string `json:"data"`
		}
		if json.Unmarshal(b, &head) != nil {
			continue
		}
		switch {
		case head.Data != "" && len(head.Data) <= images:
			images -= len(head.Data)
		case head.Data != "":
			blocks[i], changed = textBlock(fmt.Sprintf("[%s of %d bytes left out: too large]", head.Type, len(head.Data)*3/4)), true
		case head.Type == "text" && len(head.Text) > left:
			blocks[i], changed = textBlock(cutString(head.Text, left, len(head.Text))), true
			left = 0
		case head.Type == "text":
			left -= len(head.Text)
		case len(b) > left:
			blocks[i], changed = textBlock(cutString(string(b), left, len(b))), true
			left = 0
		default:
			left -= len(b)
		}
	}
	if s := r["structuredContent"]; len(s) > left {
		delete(r, "structuredContent")
		changed = true
		if len(blocks) == 0 {
			blocks = append(blocks, textBlock(cutString(string(s), max, len(s))))
		}
	}
	if !changed {
		return raw
	}
	content, err := json.Marshal(blocks)
	if err != nil {
		return cutText(string(raw), max, len(raw))
	}
	r["content"] = content
	out, err := json.Marshal(r)
	if err != nil {
		return cutText(string(raw), max, len(raw))
	}
	return out
}

func cutString(s string, keep, size int) string {
	if keep < len(s) {
		s = strings.ToValidUTF8(s[:keep], "")
	}
	return s + fmt.Sprintf("\n[cut: %d of %d bytes are shown; ask for less, or for the next part, to see the rest]", len(s), size)
}

func textBlock(text string) json.RawMessage {
	return rawjson.MarshalOrNull(map[string]string{"type": "text", "text": text})
}

func cutText(s string, keep, size int) json.RawMessage {
	return json.RawMessage(`{"content":[` + string(textBlock(cutString(s, keep, size))) + `]}`)
}
