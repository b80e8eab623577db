package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/schema"
	"junctor/internal/tool"
)

func circuitOpen(n tool.Name, s Stats, wait time.Duration) error {
	return &tool.Error{
		Kind: tool.CircuitOpen,
		Msg: fmt.Sprintf("tool %s has failed too often (%d failures so far) and is not called for now; try again in %s",
			n, s.Failures, wait.Round(time.Second)),
		Details:    map[string]any{"failures": s.Failures, "lastFailure": s.LastFailure},
		RetryAfter: wait,
	}
}

// InvalidArguments are the details of an error of kind tool.InvalidArguments.
type InvalidArguments struct {
	Violations []schema.Violation `json:"violations"`
	Schema     json.RawMessage    `json:"schema"`
}

// maxArgumentDepth is the depth limit of a message minus the two levels around
// the arguments: the message and its params.
const maxArgumentDepth = mcp.DefaultMaxDepth - 2

// checkArguments checks arguments that were not received in an MCP message but,
// for example, in a request of another API or from a model.
func checkArguments(call *tool.Call) error {
	if call.Params != nil || len(call.Arguments) == 0 {
		return nil
	}
	if err := rawjson.Check(call.Arguments, maxArgumentDepth); err != nil {
		return &tool.Error{Kind: tool.InvalidArguments, Msg: "the arguments cannot be forwarded: " + err.Error()}
	}
	return nil
}

// validate checks the arguments against the tool's schema and returns the name
// of the stage for the record. If the schema does not compile, checking is left
// to the upstream, which wrote it. If checking exceeds its bounds, the call
// fails and the tool is marked.
func validate(ctx context.Context, e *catalog.Entry, arguments json.RawMessage) (stage string, err error) {
	if trimmed := bytes.TrimSpace(arguments); len(trimmed) == 0 || string(trimmed) == "null" {
		arguments = json.RawMessage("{}")
	} else if trimmed[0] != '{' {
		return "", invalid(e, []schema.Violation{{Message: "the arguments must be a JSON object"}})
	}
	s, err := e.Schema()
	if err != nil {
		return "unchecked", nil
	}
	violations, err := s.Check(ctx, arguments)
	switch {
	case errors.Is(err, schema.ErrTooCostly):
		e.MarkSchema("its inputSchema takes too many steps to check")
		return "", &tool.Error{Kind: tool.UpstreamFailed, Err: err, Msg: fmt.Sprintf(
			"the arguments cannot be checked: the inputSchema of %s multiplies its alternatives or refers to itself, and takes too many steps; simplify it, or send smaller arguments", e.Name)}
	case err != nil:
		return "", &tool.Error{Kind: tool.Canceled, Msg: fmt.Sprintf("the call of %s was cancelled", e.Name), Err: err}
	case len(violations) > 0:
		return "", invalid(e, violations)
	}
	return "validate", nil
}

// checkUnambiguous returns an error for parameters that another parser could read
// differently. A member that occurs twice, or in another case, could name a tool
// that the caller may not use.
func checkUnambiguous(params json.RawMessage) error {
	var seen [2]bool
	for key := range rawjson.MemberNames(params) {
		for i, meant := range [2]string{"name", "arguments"} {
			if !bytes.EqualFold(key, []byte(meant)) {
				continue
			}
			if string(key) != meant || seen[i] {
				return &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("params must not contain %q twice, or a key that differs from it only in case", meant)}
			}
			seen[i] = true
		}
	}
	return nil
}

func invalid(e *catalog.Entry, violations []schema.Violation) error {
	return &tool.Error{
		Kind:    tool.InvalidArguments,
		Msg:     fmt.Sprintf("the arguments do not fit %s: %s", e.Name, schema.Summary(violations)),
		Details: InvalidArguments{Violations: violations, Schema: e.InputSchema},
	}
}

// params returns the params of the tools/call request: those of the original
// MCP request, updated from the call, or new ones if there is no such request.
func params(name string, call *tool.Call) json.RawMessage {
	if call.Params != nil {
		return withParts(name, call)
	}
	quoted, _ := json.Marshal(name)
	b := make([]byte, 0, len(quoted)+len(call.Arguments)+len(call.Meta)+40)
	b = append(b, `{"name":`...)
	b = append(b, quoted...)
	b = append(b, `,"arguments":`...)
	if trimmed := bytes.TrimSpace(call.Arguments); len(trimmed) == 0 || string(trimmed) == "null" {
		b = append(b, "{}"...)
	} else {
		b = append(b, trimmed...)
	}
	if len(call.Meta) > 0 {
		b = append(b, `,"_meta":`...)
		b = append(b, call.Meta...)
	}
	return append(b, '}')
}

// withParts returns the call's params with name, arguments and _meta replaced
// where they differ from the call.
func withParts(name string, call *tool.Call) json.RawMessage {
	out := call.Params
	var named, arguments, meta json.RawMessage
	for m := range rawjson.TrustedPositions(out) {
		switch string(m.Name(out)) {
		case "name":
			named = m.Value(out)
		case "arguments":
			arguments = m.Value(out)
		case "_meta":
			meta = m.Value(out)
		}
	}
	if rawjson.FieldString(named) != name || named == nil {
		quoted, _ := json.Marshal(name)
		out = rawjson.SetField(out, quoted, "name")
	}
	replace := func(key string, was, is json.RawMessage) {
		switch {
		case bytes.Equal(was, is):
		case len(is) == 0:
			out = rawjson.DeleteField(out, key)
		default:
			out = rawjson.SetField(out, is, key)
		}
	}
	replace("arguments", arguments, call.Arguments)
	replace("_meta", meta, call.Meta)
	return out
}

// notVisibleError returns the error for a tool whose visibility excludes the
// origin of a call.
func notVisibleError(o tool.Origin, name tool.Name) error {
	if o == tool.ByApp {
		return &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf("tool %s is not for apps: its visibility is [\"model\"]", name)}
	}
	return &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf("tool %s is for the app of its server alone, not for models: its visibility is [\"app\"]", name)}
}

// join returns a list of up to n names, with the number of the others.
func join(names []string, n int) string {
	if len(names) > n {
		return strings.Join(names[:n], ", ") + fmt.Sprintf(" and %d more", len(names)-n)
	}
	return strings.Join(names, ", ")
}

// permitted removes the tools from a server's own list that are disabled by a
// rule, not allowed for the caller, or nested too deeply to be forwarded. If
// there are none, the result is returned unchanged.
func permitted(snap *catalog.Snapshot, caller *tool.Caller, server string, result json.RawMessage) json.RawMessage {
	list, changed := []byte{'['}, false
	for item := range rawjson.Elements(rawjson.Field(result, "tools")) {
		name := tool.Name{Server: server, Tool: rawjson.FieldString(item, "name")}
		e := snap.Original(name)
		if e != nil && (!e.Enabled || !e.ListedFor(caller)) || !caller.MayUse(name) || rawjson.TooDeep(item, mcp.DefaultMaxDepth-3) {
			changed = true
			continue
		}
		if e != nil && e.Overridden() {
			item, changed = e.Raw, true
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, item...)
	}
	if !changed {
		return result
	}
	return rawjson.SetField(result, append(list, ']'), "tools")
}
