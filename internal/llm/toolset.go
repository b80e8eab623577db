package llm

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"junctor/internal/provider"
	"junctor/internal/tool"
)

// Toolset is the set of tools of a request. The translation behind it is
// cached, so a Toolset is cheap. It is safe for concurrent use. A nil Toolset
// has no tools.
type Toolset struct {
	tools *provider.Tools
	defs  []tool.Definition
	names []tool.Name
}

// NewToolset returns the tools named in which, in that order, without those
// that the translation does not contain.
func NewToolset(tools *provider.Tools, which []tool.Name) *Toolset {
	t := &Toolset{tools: tools}
	for _, n := range which {
		if d, ok := tools.Definition(n); ok {
			t.defs = append(t.defs, d)
			t.names = append(t.names, n)
		}
	}
	return t
}

// ToolsetOf returns a Toolset of exactly these tools.
func ToolsetOf(defs ...tool.Definition) *Toolset {
	names := make([]tool.Name, len(defs))
	for i, d := range defs {
		names[i] = d.Name
	}
	return NewToolset(provider.NewTools(defs, nil), names)
}

// Definitions returns the tools.
func (t *Toolset) Definitions() []tool.Definition {
	if t == nil {
		return nil
	}
	return t.defs
}

// Declare returns the declarations in a provider's format (package provider
// lists the names), or nil if there are no tools.
func (t *Toolset) Declare(format string) ([]json.RawMessage, error) {
	if len(t.Definitions()) == 0 {
		return nil, nil
	}
	listing, err := t.tools.Declare(format, t.names, provider.Options{})
	if err != nil {
		return nil, err
	}
	out := make([]json.RawMessage, len(listing.Declarations))
	for i, d := range listing.Declarations {
		out[i] = d.JSON
	}
	return out, nil
}

// Tokens estimates the tokens of the declarations.
func (t *Toolset) Tokens() int {
	n := 0
	for _, d := range t.Definitions() {
		n += len(d.Name.Server) + len(d.Name.Tool) + len(d.Description) + len(d.InputSchema) + 60
	}
	return EstimateTokens(n)
}

// Declared returns the declared name of a tool.
func (t *Toolset) Declared(n tool.Name) string {
	if t != nil {
		if name, ok := t.tools.Names().Legal(n); ok {
			return name
		}
	}
	return provider.LegalName(n)
}

func (t *Toolset) qualified(declared string) string {
	if t != nil {
		if n, ok := t.tools.Names().Tool(declared); ok {
			return n.String()
		}
	}
	return declared
}

// Call parses a call of a model: it resolves the name to a tool of the set and
// repairs the arguments. It reports false if the result differs from what the
// model wrote (an invalid name, arguments that are not an object), so that the
// turn's native form must not be sent again.
func (t *Toolset) Call(id, name string, arguments []byte) (*ToolCall, bool) {
	c := &ToolCall{ID: id, Name: legalise(name), bare: len(bytes.TrimSpace(arguments)) == 0}
	faithful := c.Name == name
	args, ok := Arguments(arguments)
	if !ok {
		c.Malformed, args, faithful = bound(string(arguments)), json.RawMessage("{}"), false
		c.Problem = "the arguments are not a JSON object"
	}
	c.Arguments = args
	if t == nil {
		return c, faithful
	}
	if n, ok := t.resolve(name); ok {
		c.Tool = n
		declared := t.Declared(n)
		faithful = faithful && declared == name
		c.Name = declared
		if c.Malformed == "" {
			if _, repaired, err := t.tools.Restore(declared, args); err == nil {
				c.Arguments = repaired
			}
		}
	}
	return c, faithful
}

// resolve returns the tool of the set that a model called. The translation
// contains the tools of all callers; those outside the set are not found, and
// do not make an unqualified name ambiguous.
func (t *Toolset) resolve(called string) (tool.Name, bool) {
	if n, ok := t.tools.Resolve("", called); ok && slices.Contains(t.names, n) {
		return n, true
	}
	is := func(n tool.Name) bool { return n.Tool == called }
	i := slices.IndexFunc(t.names, is)
	if i < 0 || slices.ContainsFunc(t.names[i+1:], is) {
		return tool.Name{}, false
	}
	return t.names[i], true
}

// maxMalformed bounds the part of malformed arguments that is kept.
const maxMalformed = 4 << 10

func bound(s string) string {
	if len(s) > maxMalformed {
		s = s[:maxMalformed]
	}
	if s = strings.ToValidUTF8(s, "\uFFFD"); s == "" {
		return "nothing"
	}
	return s
}

// legalise converts an invented name into one that every provider accepts in a
// history.
func legalise(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if clean == "" || clean[0] >= '0' && clean[0] <= '9' || clean[0] == '-' {
		clean = "_" + clean
	}
	if len(clean) > provider.MaxName {
		clean = clean[:provider.MaxName]
	}
	return clean
}

// NewCallID returns an id for a call without one.
func NewCallID() string { return "call_" + strings.ToLower(rand.Text()[:20]) }

// Arguments parses the arguments of a call: a JSON object, nothing, or an
// object encoded in a string, which some models send. It reports false for
// anything else.
func Arguments(raw []byte) (json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var inner string
		if json.Unmarshal(raw, &inner) != nil {
			return nil, false
		}
		raw = bytes.TrimSpace([]byte(inner))
	}
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), true
	}
	if raw[0] != '{' || !json.Valid(raw) {
		return nil, false
	}
	return bytes.Clone(raw), true
}

// FormatResult returns a result in a provider's format. If pictures is false,
// images are replaced by notes.
func FormatResult(format string, r *ToolResult, pictures bool) (json.RawMessage, error) {
	content := provider.ReadResult(tool.Result{Raw: r.Content, IsError: r.IsError})
	if !pictures {
		for i := range content.Parts {
			content.Parts[i].Data = ""
		}
	}
	return provider.FormatResult(format, provider.Call{ID: r.CallID, Name: r.Name}, content)
}

// imageOf returns the image of a part, or nil.
func imageOf(p provider.Part) *Image {
	if p.Kind != provider.Image || p.Data == "" {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(p.Data)
	if err != nil {
		return nil
	}
	return &Image{MIME: p.MIMEType, Data: data}
}

// resultSize returns the length of the text and the number of images in a
// result.
func resultSize(content json.RawMessage) (text, images int) {
	c := provider.ReadResult(tool.Result{Raw: content})
	for _, p := range c.Parts {
		if p.Kind == provider.Image && p.Data != "" {
			images++
		}
	}
	return len(c.Text()), images
}
