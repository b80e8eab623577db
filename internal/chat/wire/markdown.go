package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"junctor/internal/llm"
	"junctor/internal/provider"
	"junctor/internal/tool"
)

// Markdown returns a conversation as a Markdown document.
func Markdown(info SessionInfo, h HistoryPayload) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", cmp.Or(info.Title, "Conversation"))
	fmt.Fprintf(&b, "%s", info.Created.Format("2 January 2006, 15:04 MST"))
	if info.Model != "" {
		fmt.Fprintf(&b, " · %s", info.Model)
	}
	b.WriteString("\n")
	for _, m := range h.Messages {
		switch m.Role {
		case llm.User:
			b.WriteString("\n## You\n\n")
		case llm.Assistant:
			b.WriteString("\n## Assistant\n\n")
		}
		for _, p := range m.Parts {
			switch {
			case p.Text != "":
				b.WriteString(strings.TrimSpace(p.Text) + "\n\n")
			case p.Image != nil:
				b.WriteString("*(a picture)*\n\n")
			case p.File != nil:
				fmt.Fprintf(&b, "*(file %s)*\n\n", p.File.Name)
			case p.Call != nil:
				name := p.Call.Name
				if p.Call.Tool != (tool.Name{}) {
					name = p.Call.Tool.String()
				}
				fmt.Fprintf(&b, "**Call of `%s`**\n\n%s\n\n", name, fenced(pretty(p.Call.Arguments), "json"))
			case p.Result != nil:
				content := provider.ReadResult(tool.Result{Raw: p.Result.Content, IsError: p.Result.IsError})
				head := "Result"
				if content.IsError {
					head = "Failure"
				}
				fmt.Fprintf(&b, "**%s of `%s`**\n\n%s\n\n", head, p.Result.Name, fenced(content.Text(), ""))
			}
		}
		if m.Notice != "" && m.Notice != NoticeFallback {
			fmt.Fprintf(&b, "*(%s)*\n\n", m.Notice)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// fenced returns text as a code block whose fence is longer than any fence
// inside.
func fenced(text, language string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
