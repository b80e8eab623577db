package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Limits of what one upstream may provide.
const (
	maxPages      = 1000
	maxTools      = 10_000
	maxToolBytes  = 1 << 20                 // of one definition
	maxToolDepth  = mcp.DefaultMaxDepth - 3 // a list adds three levels: message, result, array
	maxListBytes  = 64 << 20                // of all
	maxToolName   = 256
	maxProblems   = 20
	maxGuidance   = 64 << 10
	guidanceTools = 100 // in generated guidance
)

// list reads the lists of the upstream. An upstream that refuses a list stays
// connected; an error means that the connection failed.
func (u *upstream) list(ctx context.Context, c *conn, cfg Config) (ToolSet, error) {
	ctx, cancel := context.WithTimeout(ctx, max(listTimeout, cfg.StartTimeoutMs.Duration()))
	defer cancel()
	set := ToolSet{Config: cfg, Info: c.client.Info()}
	raws, problem, err := u.pages(ctx, c)
	if err != nil {
		return ToolSet{}, err
	}
	c.definitions = digest(raws)
	problems := &problems{}
	if problem != "" {
		problems.add(problem)
	}
	set.Tools = definitions(cfg.Name, raws, problems)
	if cfg.remote() {
		set.Tools = dropUnmirrorable(set.Tools, problems)
	}
	set.Problems = problems.list()
	schemas := schemasOf(set.Tools)
	c.schemas.Store(&schemas)
	set.Guidance = u.guidance(ctx, c, &set)
	return set, nil
}

// schemasOf returns the input schemas of tools by name.
func schemasOf(defs []tool.Definition) map[string]json.RawMessage {
	schemas := make(map[string]json.RawMessage, len(defs))
	for _, d := range defs {
		schemas[d.Name.Tool] = d.InputSchema
	}
	return schemas
}

// digest identifies a list of definitions.
func digest(raws []json.RawMessage) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, raw := range raws {
		h.Write(raw)
		h.Write([]byte{'\n'})
	}
	h.Sum(sum[:0])
	return sum
}

// pages reads all pages of tools/list up to the limits; problem describes what
// is missing.
func (u *upstream) pages(ctx context.Context, c *conn) (raws []json.RawMessage, problem string, err error) {
	cursor := json.RawMessage(nil)
	seen := map[string]bool{}
	size := 0
	for range maxPages {
		var params json.RawMessage
		if cursor != nil {
			params = rawjson.SetField(nil, cursor, "cursor")
		}
		began := time.Now()
		page, err := c.client.Do(ctx, tool.Request{Method: mcp.MethodToolsList, Params: params})
		if err != nil {
			if refused, ok := errors.AsType[*mcp.Error](err); ok {
				if rawjson.Field(c.client.Info().Capabilities, "tools") == nil && cursor == nil {
					return nil, "", nil // it declares no such capability
				}
				return raws, fmt.Sprintf("tools/list: %s", tool.Shorten(refused.Message, 200)), nil
			}
			return nil, "", err
		}
		u.setLatency(time.Since(began))
		for raw := range rawjson.Elements(rawjson.Field(page, "tools")) {
			size += len(raw)
			if len(raws) == maxTools || size > maxListBytes {
				return raws, fmt.Sprintf("its list of tools is too large; only the first %d tools are used", len(raws)), nil
			}
			raws = append(raws, bytes.Clone(raw))
		}
		cursor = bytes.Clone(rawjson.Field(page, "nextCursor"))
		if len(cursor) == 0 || cursor[0] != '"' || string(cursor) == `""` {
			return raws, "", nil
		}
		if seen[string(cursor)] {
			return raws, "tools/list never ends: a page refers back to an earlier page", nil
		}
		seen[string(cursor)] = true
	}
	return raws, fmt.Sprintf("tools/list has more than %d pages; the rest is ignored", maxPages), nil
}

// definitions parses the entries. It reports an invalid one as a problem and
// keeps the others.
func definitions(server string, raws []json.RawMessage, problems *problems) []tool.Definition {
	defs := make([]tool.Definition, 0, len(raws))
	names := make(map[string]bool, len(raws))
	for i, raw := range raws {
		if rawjson.TooDeep(raw, maxToolDepth) {
			problems.add(fmt.Sprintf("tool %q is left out: its definition is nested deeper than %d levels", tool.Shorten(rawjson.FieldString(raw, "name"), 100), maxToolDepth))
			continue
		}
		d, err := tool.ParseDefinition(server, raw)
		switch {
		case len(raw) > maxToolBytes:
			problems.add(fmt.Sprintf("tool %d: its definition has %d bytes, more than %d", i+1, len(raw), maxToolBytes))
		case err != nil:
			problems.add(fmt.Sprintf("tool %d: %s", i+1, tool.Shorten(err.Error(), 200)))
		case len(d.Name.Tool) > maxToolName:
			problems.add(fmt.Sprintf("tool %d: its name has more than %d characters", i+1, maxToolName))
		case names[d.Name.Tool]:
			problems.add(fmt.Sprintf("tool %q is listed twice; the first definition is used", d.Name.Tool))
		default:
			names[d.Name.Tool] = true
			defs = append(defs, d)
		}
	}
	return defs
}

// dropUnmirrorable leaves out the tools whose x-mcp-header annotations violate
// MCP: over HTTP their calls could not be sent with the headers that they
// require.
func dropUnmirrorable(defs []tool.Definition, problems *problems) []tool.Definition {
	return slices.DeleteFunc(defs, func(d tool.Definition) bool {
		_, err := mcp.HeaderParams(d.InputSchema)
		if err != nil {
			problems.add(fmt.Sprintf("tool %q is left out: %s", d.Name.Tool, tool.Shorten(err.Error(), 200)))
		}
		return err != nil
	})
}

// problems collects messages, up to maxProblems, and counts the rest.
type problems struct {
	texts []string
	more  int
}

func (p *problems) add(text string) {
	if len(p.texts) == maxProblems {
		p.more++
		return
	}
	p.texts = append(p.texts, text)
}

func (p *problems) list() []string {
	if p.more > 0 {
		return append(p.texts, fmt.Sprintf("and %d more", p.more))
	}
	return p.texts
}

// guidance returns how the tools are meant to be used: the prompt
// tool-descriptions, else the instructions, else a text generated from the
// definitions.
func (u *upstream) guidance(ctx context.Context, c *conn, set *ToolSet) tool.Guidance {
	if rawjson.Field(set.Info.Capabilities, "prompts") != nil {
		ctx, cancel := context.WithTimeout(ctx, guidanceTimeout)
		defer cancel()
		result, err := c.client.Do(ctx, tool.Request{Method: mcp.MethodPromptsGet, Params: json.RawMessage(`{"name":"tool-descriptions"}`)})
		if text := promptText(result); err == nil && text != "" {
			return tool.Guidance{Text: truncate(text), Source: tool.FromPrompt}
		}
	}
	if text := strings.TrimSpace(set.Info.Instructions); text != "" {
		return tool.Guidance{Text: truncate(text), Source: tool.FromInstructions}
	}
	return tool.Guidance{Text: generatedGuidance(set), Source: tool.Generated}
}

// promptText returns the text of a prompt that consists of one text message of
// the user, and "" for any other prompt.
func promptText(result json.RawMessage) string {
	var message json.RawMessage
	n := 0
	for m := range rawjson.Elements(rawjson.Field(result, "messages")) {
		message = m
		n++
	}
	if n != 1 || rawjson.FieldString(message, "role") != "user" || rawjson.FieldString(message, "content", "type") != "text" {
		return ""
	}
	return strings.TrimSpace(rawjson.FieldString(message, "content", "text"))
}

func truncate(text string) string {
	if len(text) <= maxGuidance {
		return text
	}
	const cut = "…"
	return strings.ToValidUTF8(text[:maxGuidance-len(cut)], "") + cut
}

// generatedGuidance returns guidance for a server that provides none.
func generatedGuidance(set *ToolSet) string {
	if len(set.Tools) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Tools of %s", set.Config.Name)
	if d := strings.TrimSpace(set.Config.Description); d != "" {
		fmt.Fprintf(&b, " (%s)", tool.Shorten(d, 200))
	}
	b.WriteString(":\n")
	for i, d := range set.Tools {
		if i == guidanceTools {
			fmt.Fprintf(&b, "… and %d more\n", len(set.Tools)-i)
			break
		}
		fmt.Fprintf(&b, "- %s", d.Name.Tool)
		if s := d.Summary(160); s != "" {
			fmt.Fprintf(&b, ": %s", s)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

// publishTools passes a tool set to the sink.
func (u *upstream) publishTools(set ToolSet) {
	u.taskTools.Store(taskTools(set.Tools))
	u.mu.Lock()
	set.Config = u.cfg // it may have changed while the tools were listed
	u.tools, u.problems = len(set.Tools), set.Problems
	u.mu.Unlock()
	u.s.opts.Sink.ToolsChanged(set)
}

// setLatency records the latency of a simple request.
func (u *upstream) setLatency(d time.Duration) {
	u.mu.Lock()
	u.latency = d
	u.mu.Unlock()
}
