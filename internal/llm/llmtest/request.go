package llmtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// The wire formats, as [When.API] and [Request.API] name them.
const (
	Chat      = "chat"
	Responses = "responses"
	Anthropic = "anthropic"
	Gemini    = "gemini"
)

// Request is a parsed request, for assertions.
type Request struct {
	API      string
	Path     string
	Header   http.Header
	Body     json.RawMessage
	Model    string
	Stream   bool
	System   string
	Messages []Message
	Tools    []Tool
	Choice   string // auto, none, required, or the name of the required tool
	// Parallel is false when the request forbids parallel calls.
	Parallel bool
}

// Message is one message of a request.
type Message struct {
	Role    string // user, assistant, tool
	Text    string
	Calls   []Called
	Results []Result
	Images  int
}

// Called is a tool call in the history.
type Called struct {
	ID, Name, Args string
}

// Result is a tool result in the history.
type Result struct {
	ID, Name, Text string
	IsError        bool
	Images         int
}

// Tool is a declared tool. Namespace is set if the responses API groups tools
// in one.
type Tool struct {
	Namespace, Name, Description string
	Schema                       json.RawMessage
}

// LastUser returns the latest user message that has text.
func (r *Request) LastUser() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" && m.Text != "" {
			return m.Text
		}
	}
	return ""
}

// Results returns the tool results since the latest user message with text.
func (r *Request) Results() []Result {
	var out []Result
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" && m.Text != "" {
			break
		}
		out = append(slices.Clone(m.Results), out...)
	}
	return out
}

// Lookup returns the declared tool with any of its names, see [Call].
func (r *Request) Lookup(name string) (Tool, bool) {
	for _, t := range r.Tools {
		if t.Name == name {
			return t, true
		}
	}
	want := plain(name)
	for _, t := range r.Tools {
		if got := plain(t.Namespace + "_" + t.Name); got == want || plain(t.Name) == want {
			return t, true
		}
	}
	for _, t := range r.Tools {
		if strings.HasSuffix(plain(t.Namespace+"_"+t.Name), "_"+want) {
			return t, true
		}
	}
	return Tool{}, false
}

// plain reduces a name to what is common to every client's renaming: lower-case
// letters and digits, everything else one underscore.
func plain(s string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(s) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "_") {
			b.WriteByte('_')
		}
	}
	return strings.Trim(b.String(), "_")
}

func (w *When) fits(r *Request) bool {
	user := r.LastUser()
	results := r.Results()
	last := ""
	if len(results) > 0 {
		last = results[len(results)-1].Text
	}
	switch {
	case w.User != "" && !strings.Contains(strings.ToLower(user), strings.ToLower(w.User)),
		w.match != nil && !w.match.MatchString(user),
		w.System != "" && !strings.Contains(r.System, w.System),
		w.Results != nil && *w.Results != len(results),
		w.Result != "" && !strings.Contains(last, w.Result),
		w.History != "" && !strings.Contains(r.everything(), w.History),
		w.Model != "" && w.Model != r.Model,
		w.API != "" && w.API != r.API:
		return false
	}
	if w.Tool != "" {
		if _, ok := r.Lookup(w.Tool); !ok {
			return false
		}
	}
	return true
}

func (r *Request) everything() string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Text + "\n")
		for _, res := range m.Results {
			b.WriteString(res.Text + "\n")
		}
	}
	return b.String()
}

// expand replaces placeholders by parts of the request.
func (w *When) expand(s string, r *Request) string {
	if !strings.ContainsAny(s, "${") {
		return s
	}
	user := r.LastUser()
	if w.match != nil {
		if loc := w.match.FindStringSubmatchIndex(user); loc != nil {
			s = string(w.match.ExpandString(nil, s, user, loc))
		}
	}
	var all, names []string
	for _, res := range r.Results() {
		all = append(all, res.Text)
	}
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	last := ""
	if len(all) > 0 {
		last = all[len(all)-1]
	}
	return strings.NewReplacer(
		"{{user}}", user,
		"{{result}}", last,
		"{{results}}", strings.Join(all, "\n"),
		"{{tools}}", strings.Join(names, ","),
		"{{model}}", r.Model,
	).Replace(s)
}

// expandArgs does the same in every string of a JSON value. A string that
// starts with "=" is replaced by the JSON value after it, so that "=$1" can be
// a number.
func (w *When) expandArgs(v any, r *Request) any {
	switch v := v.(type) {
	case string:
		out := w.expand(v, r)
		if rest, ok := strings.CutPrefix(out, "="); ok && json.Valid([]byte(rest)) {
			return json.RawMessage(rest)
		}
		return out
	case []any:
		for i := range v {
			v[i] = w.expandArgs(v[i], r)
		}
	case map[string]any:
		for k := range v {
			v[k] = w.expandArgs(v[k], r)
		}
	}
	return v
}
