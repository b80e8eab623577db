package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// PartKind is the kind of a part of a result.
type PartKind string

// The kinds of parts.
const (
	Text  PartKind = "text"
	Image PartKind = "image"
	Audio PartKind = "audio"
	File  PartKind = "file" // an embedded resource that is not text
	Link  PartKind = "link" // a resource that is referenced, not included
)

// Part is one provider-independent part of a tool's result.
type Part struct {
	Kind     PartKind
	Text     string // of Text; otherwise the note that replaces the part where only text is possible
	Data     string // base64, of Image, Audio and File
	MIMEType string
	Name     string
}

// Content is a parsed tool result.
type Content struct {
	Parts      []Part
	Structured json.RawMessage // structuredContent, or nil
	IsError    bool
}

// ReadResult parses a CallToolResult. It never fails: an unknown block becomes
// a text part with its JSON.
func ReadResult(r tool.Result) Content {
	c := Content{IsError: r.IsError}
	var raw struct {
		Content           []json.RawMessage `json:"content"`
		StructuredContent json.RawMessage   `json:"structuredContent"`
		ToolResult        json.RawMessage   `json:"toolResult"` // before 2024-11-05
		IsError           bool              `json:"isError"`
	}
	if err := json.Unmarshal(r.Raw, &raw); err != nil {
		if text := strings.TrimSpace(string(r.Raw)); text != "" {
			c.Parts = []Part{{Kind: Text, Text: strings.ToValidUTF8(text, "�")}}
		}
		return c
	}
	c.IsError = c.IsError || raw.IsError
	for _, block := range raw.Content {
		c.Parts = append(c.Parts, readPart(block))
	}
	c.Structured = compact(raw.StructuredContent)
	if c.Structured == nil && len(c.Parts) == 0 {
		c.Structured = compact(raw.ToolResult)
	}
	return c
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil || b.String() == "null" {
		return nil
	}
	return b.Bytes()
}

func readPart(block json.RawMessage) Part {
	var b struct {
		Type        string  `json:"type"`
		Text        *string `json:"text"`
		Data        string  `json:"data"`
		MIMEType    string  `json:"mimeType"`
		URI         string  `json:"uri"`
		Name        string  `json:"name"`
		Title       string  `json:"title"`
		Description string  `json:"description"`
		Resource    *struct {
			URI      string  `json:"uri"`
			MIMEType string  `json:"mimeType"`
			Text     *string `json:"text"`
			Blob     string  `json:"blob"`
		} `json:"resource"`
	}
	unknown := Part{Kind: Text, Text: string(block)}
	if json.Unmarshal(block, &b) != nil {
		return unknown
	}
	switch {
	case b.Type == "text" && b.Text != nil:
		return Part{Kind: Text, Text: *b.Text}
	case b.Type == "image" && b.Data != "":
		return media(Image, b.Data, b.MIMEType, "")
	case b.Type == "audio" && b.Data != "":
		return media(Audio, b.Data, b.MIMEType, "")
	case b.Type == "resource_link" && b.URI != "":
		text := "[resource " + b.URI
		for _, more := range []string{cmp.Or(b.Title, b.Name), b.MIMEType, b.Description} {
			if more != "" {
				text += ", " + more
			}
		}
		return Part{Kind: Link, Text: text + "]", Name: cmp.Or(b.Title, b.Name), MIMEType: b.MIMEType}
	case b.Type == "resource" && b.Resource != nil && b.Resource.Text != nil:
		return Part{Kind: Text, Text: *b.Resource.Text, MIMEType: b.Resource.MIMEType}
	case b.Type == "resource" && b.Resource != nil && b.Resource.Blob != "":
		kind := File
		if strings.HasPrefix(b.Resource.MIMEType, "image/") {
			kind = Image
		}
		return media(kind, b.Resource.Blob, b.Resource.MIMEType, b.Resource.URI)
	}
	return unknown
}

// Text returns the result as text, for providers that accept nothing else.
// Media are replaced by notes.
func (c Content) Text() string {
	texts := make([]string, 0, len(c.Parts))
	for _, p := range c.Parts {
		texts = append(texts, p.Text)
	}
	text := strings.Join(texts, "\n")
	if text == "" && c.Structured != nil {
		return string(c.Structured)
	}
	return text
}

// ErrorText is like Text, for providers that cannot mark a result as an error.
func (c Content) ErrorText() string {
	text := c.Text()
	if !c.IsError {
		return text
	}
	if text == "" {
		return "Error: the tool failed without saying why"
	}
	return markError(text)
}

// markError returns the text of a failed tool with the prefix by which clients
// recognize errors.
func markError(text string) string {
	if strings.HasPrefix(text, "Error:") {
		return text
	}
	return "Error: " + text
}

// value returns the result as a JSON value: structured content if the text adds
// nothing to it, JSON if the text is JSON, otherwise the text.
func (c Content) value(text string) any {
	if c.Structured != nil && (text == "" || sameJSON(text, c.Structured)) {
		return c.Structured
	}
	if t := strings.TrimSpace(text); c.Structured == nil && len(t) > 1 && (t[0] == '{' || t[0] == '[') {
		if v := compact(json.RawMessage(t)); v != nil {
			return v
		}
	}
	return text
}

func sameJSON(text string, structured json.RawMessage) bool {
	a, errA := parseJSON([]byte(text))
	b, errB := parseJSON(structured)
	return errA == nil && errB == nil && equalJSON(a, b)
}

// split separates the text of a result from the media that the provider accepts
// in a separate list; other media stay in the text as notes. If mark is set and
// several texts or media alternate, a marker such as [image 2] in the text
// shows the position of each.
func (c Content) split(takes func(Part) bool, mark bool) (text string, media []Part) {
	var texts, marked []string
	for _, p := range c.Parts {
		if p.Data != "" && p.matchesMIMEType() && takes(p) {
			media = append(media, p)
			marked = append(marked, fmt.Sprintf("[%s %d]", p.Kind, len(media)))
		} else {
			texts = append(texts, p.Text)
			marked = append(marked, p.Text)
		}
	}
	if mark && len(media) > 0 && len(texts) > 0 && len(media)+len(texts) > 2 {
		texts = marked
	}
	return strings.Join(texts, "\n"), media
}

func isText(p Part) bool { return p.Data == "" }

// ordered returns the parts in their order, for providers that accept a list:
// parts that the provider accepts unchanged, and the text between them joined
// into one part. Empty text is omitted.
func (c Content) ordered(takes func(Part) bool) []Part {
	var out []Part
	var texts []string
	flush := func() {
		if text := strings.Join(texts, "\n"); text != "" {
			out = append(out, Part{Kind: Text, Text: text})
		}
		texts = nil
	}
	for _, p := range c.Parts {
		if p.Data != "" && p.matchesMIMEType() && takes(p) {
			flush()
			out = append(out, p)
		} else {
			texts = append(texts, p.Text)
		}
	}
	flush()
	return out
}

// repeats reports whether the structured content contains the whole text: each
// text is a string in it, or the JSON of a value in it.
func (c Content) repeats() bool {
	const maxParts = 64 // parts that are compared
	if c.Structured == nil || len(c.Parts) == 0 || len(c.Parts) > maxParts {
		return false
	}
	whole, err := parseJSON(c.Structured)
	if err != nil {
		return false
	}
	for _, p := range c.Parts {
		value, err := parseJSON([]byte(p.Text))
		if p.Kind != Text || !holds(whole, func(v any) bool {
			s, isText := v.(string)
			return isText && s == p.Text || err == nil && equalJSON(v, value)
		}) {
			return false
		}
	}
	return true
}

// holds reports whether is returns true for v or for a value inside it.
func holds(v any, is func(any) bool) bool {
	if is(v) {
		return true
	}
	inside := func(v any) bool { return holds(v, is) }
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, inside)
	case *object:
		return slices.ContainsFunc(v.keys, func(key string) bool { value, _ := v.get(key); return inside(value) })
	}
	return false
}

// ErrorContent returns an error of the gateway as a result for a model.
func ErrorContent(err error) Content {
	e := tool.AsError(err)
	text := fmt.Sprintf("%s: %s", e.Kind, e.Msg)
	if e.Details != nil {
		if details, err := rawjson.Marshal(e.Details); err == nil && len(details) <= 4<<10 {
			text += " " + string(details)
		}
	}
	return Content{Parts: []Part{{Kind: Text, Text: text}}, IsError: true}
}
