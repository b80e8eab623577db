package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strings"

	"junctor/internal/provider"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// prompted provides tools to a model without native tool calling: they are
// described in the system prompt, and the model calls one by writing a fenced
// block.
type prompted struct{ Model }

// WithPromptTools returns m with tools in the prompt, see [fenceScanner].
func WithPromptTools(m Model) Model { return prompted{m} }

func (p prompted) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	tools := req.Tools
	inner := req
	inner.System = compilePrompt(req)
	inner.Guidance = ""
	inner.Messages = promptHistory(req.History())
	inner.Tools, inner.Choice, inner.Only, inner.Single = nil, Auto, "", false
	return func(yield func(Event, error) bool) {
		r := promptReader{tools: tools, single: req.Single}
		for ev, err := range p.Model.Stream(ctx, inner) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			switch {
			case ev.Text != "":
				for _, out := range r.read(r.scan.write(ev.Text)) {
					if !yield(out, nil) {
						return
					}
				}
			case ev.Reasoning != "":
				if !yield(r.reply.Reasoning(ev.Reasoning), nil) {
					return
				}
			case ev.Turn != nil:
				for _, out := range r.read(r.scan.end()) {
					if !yield(out, nil) {
						return
					}
				}
				yield(r.turn(*ev.Turn), nil)
				return
			}
		}
	}
}

// promptReader converts the pieces of a text into events and a message.
type promptReader struct {
	tools  *Toolset
	single bool
	scan   fenceScanner
	reply  Builder
	blocks int
}

// unreadable is the name of a call whose block could not be parsed.
const unreadable = "unreadable_block"

func (r *promptReader) read(pieces []piece) []Event {
	var out []Event
	for _, p := range pieces {
		switch {
		case !p.tool && r.blocks > 0:
			// Only a result can follow a call, so any text here is
			// hallucinated.
		case !p.tool:
			out = append(out, r.reply.Text(p.text))
		default:
			r.blocks++
			for _, c := range r.block(p) {
				if r.single && r.reply.Calls() > 0 {
					break
				}
				out = append(out, r.reply.Call(c, false))
			}
		}
	}
	return out
}

// block parses the calls of a block. A block that cannot be parsed becomes a
// malformed call, so that the model gets an error for it.
func (r *promptReader) block(p piece) []*ToolCall {
	blockCalls, err := parseBlock(p.block)
	if err != nil {
		problem := "the block is not a tool call: " + err.Error()
		if !p.closed {
			problem = "the block is not finished"
		}
		return []*ToolCall{{ID: NewCallID(), Name: unreadable, Arguments: json.RawMessage("{}"),
			Malformed: bound(strings.TrimSpace(p.block)), Problem: problem}}
	}
	var calls []*ToolCall
	for _, w := range blockCalls {
		c, _ := r.tools.Call(NewCallID(), w.Tool, w.Arguments)
		c.bare = false // a block that can be parsed was not cut off
		calls = append(calls, c)
	}
	return calls
}

// turn ends the reply. The native form does not contain the calls, so it is
// dropped.
func (r *promptReader) turn(t Turn) Event {
	return r.reply.Turn(t.Stop, t.Detail, t.Usage, "", nil)
}

const promptRule = "You can use tools. To use one, respond ONLY with the call, as a JSON object in a fenced block that is marked `tool`, exactly like this:\n" +
	"```tool\n{\"tool\": \"server:name\", \"arguments\": {\"key\": \"value\"}}\n```\n" +
	"Write no text before the opening ```tool or after the closing ```. " +
	"The arguments must fit the tool's schema. To use several tools at once, write several such blocks, one after the other. " +
	"The results come back in the next message; never make one up. " +
	"If a tool fails, read the error, then correct the call, try another way, or say what is missing. " +
	"When you need no tool, answer in plain text without such a block."

// compilePrompt returns the system prompt of a model with tools in the prompt:
// the base, the format of calls, the tools and the servers' guidance, in this
// order.
func compilePrompt(req Request) string {
	var b strings.Builder
	add := func(s string) {
		if s = strings.TrimSpace(s); s == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(s)
	}
	add(req.System)
	if defs := req.Tools.Definitions(); len(defs) > 0 && req.Choice != None {
		add(promptRule)
		switch {
		case req.Choice == Required && req.Only != "":
			add("Answer with a call of the tool " + req.Tools.qualified(req.Only) + " now.")
		case req.Choice == Required:
			add("Answer with a tool call now.")
		}
		if req.Single {
			add("Call at most one tool.")
		}
		add("The tools:")
		for _, d := range defs {
			add(promptTool(d))
		}
	}
	add(req.Guidance)
	return b.String()
}

func promptTool(d tool.Definition) string {
	text := "- " + d.Name.String()
	if d.Description != "" {
		text += ": " + strings.TrimSpace(d.Description)
	}
	schema := d.InputSchema
	var compact bytes.Buffer // without white space, which costs tokens
	if json.Compact(&compact, schema) == nil {
		schema = compact.Bytes()
	}
	return text + "\n  arguments: " + string(schema)
}

// promptHistory writes calls as fenced blocks and results as messages of the
// user, and joins consecutive messages of one role, because such models often
// require alternating roles.
func promptHistory(messages []Message) []Message {
	var out []Message
	for _, m := range messages {
		var parts []Part
		var b strings.Builder
		for _, p := range m.Parts {
			switch {
			case p.Text != "":
				b.WriteString(p.Text)
			case p.Image != nil || p.File != nil:
				parts = append(parts, p)
			case p.Call != nil:
				if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
					b.WriteByte('\n')
				}
				b.WriteString(promptCall(p.Call))
			case p.Result != nil:
				text, images := promptResult(p.Result)
				b.WriteString(text)
				parts = append(parts, images...)
			}
		}
		if b.Len() > 0 {
			parts = append([]Part{{Text: b.String()}}, parts...)
		}
		if len(parts) == 0 {
			continue
		}
		role := m.Role
		if role == Tool {
			role = User
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			if last := &out[n-1]; last.Parts[len(last.Parts)-1].Text != "" && parts[0].Text != "" {
				last.Parts[len(last.Parts)-1].Text += "\n\n" + parts[0].Text
				parts = parts[1:]
			}
			out[n-1].Parts = append(out[n-1].Parts, parts...)
			continue
		}
		out = append(out, Message{Role: role, Parts: parts})
	}
	return out
}

func promptCall(c *ToolCall) string {
	if c.Malformed != "" {
		return "```tool\n" + strings.ReplaceAll(c.Malformed, fence, "'''") + "\n```\n"
	}
	name := c.Name
	if c.Tool != (tool.Name{}) {
		name = c.Tool.String()
	}
	args := c.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	block, err := rawjson.Marshal(struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}{name, args})
	if err != nil {
		block = []byte(`{"tool":"` + unreadable + `"}`)
	}
	return "```tool\n" + string(block) + "\n```\n"
}

func promptResult(r *ToolResult) (string, []Part) {
	content := provider.ReadResult(tool.Result{Raw: r.Content, IsError: r.IsError})
	var images []Part
	for i, p := range content.Parts {
		if img := imageOf(p); img != nil {
			images = append(images, Part{Image: img})
			content.Parts[i].Text = "[image below]"
		}
	}
	head := "Result of " + r.Name
	if content.IsError {
		head = "Failure of " + r.Name
	}
	return head + ":\n" + content.Text() + "\n", images
}
