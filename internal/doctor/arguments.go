package doctor

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ParseCalls parses calls of the form TOOL or TOOL {…}.
func ParseCalls(list []string) ([]ToolCall, error) {
	var out []ToolCall
	for _, text := range list {
		name, arguments, _ := strings.Cut(strings.TrimSpace(text), " ")
		if arguments = strings.TrimSpace(arguments); arguments == "" {
			arguments = "{}"
		}
		if name == "" || !json.Valid([]byte(arguments)) || arguments[0] != '{' {
			return nil, fmt.Errorf(`--call %q is not a tool and a JSON object; write 'add {"a": 1}'`, text)
		}
		out = append(out, ToolCall{Tool: name, Arguments: json.RawMessage(arguments)})
	}
	return out, nil
}

// SplitCommand splits a command line like a shell, without expansions.
func SplitCommand(s string) []string {
	var out []string
	var b strings.Builder
	in, quote := false, rune(0)
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(r)
		case r == '\'' || r == '"':
			in, quote = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if in {
				out = append(out, b.String())
				b.Reset()
			}
			in = false
		default:
			in = true
			b.WriteRune(r)
		}
	}
	if in {
		out = append(out, b.String())
	}
	return out
}
