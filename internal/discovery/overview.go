package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"junctor/internal/mcpserver"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Limits of descriptions of servers, in characters.
const (
	descriptionLength = 160
	overviewLength    = 1600
	overviewLine      = 100

	instructionsLength = 6000 // of all servers together
	instructionsOfOne  = 1500

	overviewTools   = 4  // number of tools listed for a server without a description
	overviewServers = 12 // tools are listed only if there are at most this many servers
)

// serverLine is one server in a response.
type serverLine struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	ToolCount   int            `json:"toolCount"`
	Enabled     int            `json:"enabledCount"`
	Status      upstream.State `json:"status"`
	Reason      string         `json:"reason,omitempty"`

	first []string // its first tools, shown if there is no description
}

// servers returns all servers that the caller may see.
func (f *Face) servers(caller *tool.Caller) []serverLine {
	var lines []serverLine
	for _, s := range f.opts.Tools.Servers(caller) {
		line := serverLine{Name: s.Name, Status: s.State}
		if s.State != upstream.Connected {
			line.Reason = tool.Shorten(s.Reason, 200)
		}
		if s.Known != nil {
			line.ToolCount, line.Enabled = s.Tools, s.Enabled
			line.Description = tool.Shorten(cmp.Or(tool.OneLine(s.Known.Description), s.Known.Title), descriptionLength)
			for _, e := range s.Known.Tools {
				if e.Enabled && e.UsableBy(caller) && len(line.first) < overviewTools {
					line.first = append(line.first, e.Name.Tool)
				}
			}
		}
		lines = append(lines, line)
	}
	return lines
}

const (
	metaInstructions = "Junctor gives you the tools of many MCP servers. Find one with search_tools (describe the task), then run it with execute_tool. get_tool_details has a tool's full schema."
	codeInstructions = "Junctor gives you the tools of many MCP servers. Find them with search_tools (describe the task), then call them in one script with run_code: loop, filter and combine there, and return only what you need."
)

// overview returns instructions with the list of the servers.
func (f *Face) overview(caller *tool.Caller, how string) string {
	var b strings.Builder
	b.WriteString(profileInstructions(caller))
	b.WriteString(how)
	lines := f.servers(caller)
	if len(lines) == 0 {
		b.WriteString(" No server is configured yet.")
		return b.String()
	}
	b.WriteString(" Servers:")
	for i, s := range lines {
		var line strings.Builder
		line.WriteString("\n- " + s.Name)
		about := tool.Shorten(s.Description, overviewLine)
		if about == "" && len(lines) <= overviewServers {
			about = tool.Shorten(strings.Join(s.first, ", "), overviewLine)
		}
		if about != "" {
			line.WriteString(": " + about)
		}
		switch {
		case s.Enabled == 1:
			line.WriteString(" (1 tool)")
		case s.Enabled > 0:
			fmt.Fprintf(&line, " (%d tools)", s.Enabled)
		case s.Status != upstream.Connected:
			fmt.Fprintf(&line, " (%s)", s.Status)
		}
		if b.Len()+line.Len() > overviewLength {
			fmt.Fprintf(&b, "\n… and %d more: list_mcp_servers", len(lines)-i)
			break
		}
		b.WriteString(line.String())
	}
	return b.String()
}

// profileInstructions returns the instructions of the caller's profiles.
func profileInstructions(caller *tool.Caller) string {
	if text := caller.Instructions(); text != "" {
		return text + "\n\n"
	}
	return ""
}

// allInstructions returns the instructions of the servers, up to a limit.
func (f *Face) allInstructions(caller *tool.Caller) string {
	var b strings.Builder
	b.WriteString(profileInstructions(caller))
	b.WriteString("Junctor joins many MCP servers. Tools and prompts are named server__name.")
	for _, s := range f.opts.Tools.Snapshot().Servers() {
		text := tool.Shorten(strings.TrimSpace(s.Instructions), instructionsOfOne)
		if text != "" && caller.MaySee(s.Name) && b.Len()+len(text) <= instructionsLength {
			fmt.Fprintf(&b, "\n\n%s:\n%s", s.Name, text)
		}
	}
	return b.String()
}

func (v *metaView) listServers(_ context.Context, r *mcpserver.Request, _ map[string]json.RawMessage) (json.RawMessage, error) {
	out := struct {
		Servers []serverLine `json:"servers"`
		More    int          `json:"more,omitempty"`
		Hint    string       `json:"hint,omitempty"`
	}{Servers: v.face.servers(&r.Caller)}
	var kept []serverLine
	kept, out.More = fit(out.Servers, v.face.config.Load().MaxAnswerBytes)
	if out.Servers = kept; out.Servers == nil {
		out.Servers = []serverLine{}
		out.Hint = "no server is configured; add one with: junctor servers add"
	}
	if out.More > 0 {
		out.Hint = "search_tools finds the tools of all of them"
	}
	return answer(out), nil
}
