package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/schema"
	"junctor/internal/tool"
)

// maxCalls bounds the calls that the caller did not request.
const maxCalls = 10

// calls calls the requested tools, and those that are marked read-only and have
// no required parameters.
func (r *TestReport) calls(ctx context.Context, o TestOptions, c *connection, defs []tool.Definition) {
	const area = "calls"
	list := slices.Clone(o.Calls)
	if !o.NoCalls {
		for _, d := range defs {
			asked := slices.ContainsFunc(list, func(t ToolCall) bool { return t.Tool == d.Name.Tool })
			if !asked && harmless(d) && len(list) < len(o.Calls)+maxCalls {
				list = append(list, ToolCall{Tool: d.Name.Tool, Arguments: json.RawMessage("{}")})
			}
		}
	}
	if len(list) == 0 {
		if len(defs) > 0 {
			r.Add(Finding{
				Severity: Info, Area: area, What: "no tool was called: none is marked read-only and has no required parameters",
				Do: `name some: --call 'TOOL {"key": "value"}'`,
			})
		}
		return
	}
	var slow ToolCall
	var slowest time.Duration
	for _, t := range list {
		i := slices.IndexFunc(defs, func(d tool.Definition) bool { return d.Name.Tool == t.Tool })
		if i < 0 {
			r.Add(Finding{Severity: Problem, Area: area, Subject: t.Tool, What: "there is no such tool"})
			continue
		}
		if took, ok := r.call(ctx, o, c, defs[i], t); ok && took >= slowest {
			slow, slowest = t, took
		}
	}
	if slow.Tool != "" {
		r.cancel(ctx, o, c, slow, slowest)
	}
}

// harmless reports whether a tool may be called without being requested: it is
// marked read-only and has no required parameters.
func harmless(d tool.Definition) bool {
	if d.Annotations.ReadOnlyHint == nil || !*d.Annotations.ReadOnlyHint {
		return false
	}
	for range rawjson.Elements(rawjson.Field(d.InputSchema, "required")) {
		return false
	}
	return true
}

// call calls one tool and checks its result against its outputSchema. It
// returns how long the tool took and whether it returned a result.
func (r *TestReport) call(ctx context.Context, o TestOptions, c *connection, d tool.Definition, t ToolCall) (took time.Duration, answered bool) {
	f := Finding{Area: "calls", Subject: t.Tool}
	result, took, err := c.do(ctx, o, mcp.MethodToolsCall, map[string]any{"name": t.Tool, "arguments": t.Arguments})
	f.TookMs = millis(took)
	if err != nil {
		f.Severity, f.What = Problem, describe(err)
		r.Add(f)
		return took, false
	}
	if problem := shape(result); problem != "" {
		f.Severity, f.What = Problem, problem
		r.Add(f)
		return took, true
	}
	if string(rawjson.Field(result, "isError")) == "true" {
		f.Severity, f.What = Info, "returned an error: "+firstText(result)
		r.Add(f)
		return took, true
	}
	structured := rawjson.Field(result, "structuredContent")
	switch {
	case len(d.OutputSchema) == 0:
		f.Severity, f.What = OK, "answered"
	case structured == nil:
		f.Severity, f.What, f.Do = Problem, "declares an outputSchema but returned no structuredContent", "clients that validate results reject this"
	default:
		s, err := schema.Compile(d.OutputSchema)
		if err != nil {
			return took, true // already reported
		}
		violations, err := s.Check(ctx, structured)
		if err != nil {
			f.Severity, f.What, f.Do = Problem, "the result cannot be checked: "+err.Error(), "simplify the outputSchema"
			break
		}
		if len(violations) == 0 {
			f.Severity, f.What = OK, "answered, and the result fits its outputSchema"
			break
		}
		f.Severity, f.What, f.Do = Problem, "the result does not match its outputSchema", "clients that validate results reject this"
		for _, v := range violations {
			f.Details = append(f.Details, fmt.Sprintf("at %q: %s", v.Path, v.Message))
		}
	}
	r.Add(f)
	return took, true
}

// shape describes what is wrong with the structure of a result, or returns "".
func shape(result json.RawMessage) string {
	content := rawjson.Field(result, "content")
	if len(content) == 0 || content[0] != '[' {
		return "the result has no array \"content\""
	}
	i := 0
	for block := range rawjson.Elements(content) {
		if rawjson.FieldString(block, "type") == "" {
			return fmt.Sprintf("block %d of the result has no type", i+1)
		}
		i++
	}
	return ""
}

func firstText(result json.RawMessage) string {
	for block := range rawjson.Elements(rawjson.Field(result, "content")) {
		if text := rawjson.FieldString(block, "text"); text != "" {
			return tool.Shorten(text, 200)
		}
	}
	return "(no text)"
}

// cancel repeats a call that took long, cancels it half-way, and checks that
// the server still answers.
func (r *TestReport) cancel(ctx context.Context, o TestOptions, c *connection, t ToolCall, took time.Duration) {
	const area = "calls"
	params, err := json.Marshal(map[string]any{"name": t.Tool, "arguments": t.Arguments})
	if err != nil {
		return
	}
	short, cancel := context.WithTimeout(ctx, min(took/2, 500*time.Millisecond))
	_, err = c.client.Do(short, tool.Request{Method: mcp.MethodToolsCall, Params: params})
	cancel()
	_, refused := errors.AsType[*mcp.Error](err)
	if _, _, err := c.do(ctx, o, mcp.MethodToolsList, map[string]any{}); err != nil {
		r.Add(Finding{
			Severity: Problem, Area: area, Subject: "cancellation", What: "the server does not respond after a cancelled call: " + describe(err),
			Do: "notifications/cancelled ends one request, not the session",
		})
		return
	}
	what := "a call was cancelled, and the server continues"
	if err == nil || refused {
		what = "the calls finish before they can be cancelled; the server continues"
	}
	r.Add(Finding{Severity: OK, Area: area, Subject: "cancellation", What: what})
}
