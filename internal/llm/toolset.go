package llm

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"

	"junctor/internal/provider"
	"junctor/internal/tool"
)

// Toolset is the tools that a model is offered. The translation behind it
// keeps what it has translated, so a Toolset costs little; it may be used by
// many requests at once. A nil Toolset has no tools.
type Toolset struct {
	tools *provider.Tools
	defs  []tool.Definition
	names []tool.Name
}

// NewToolset offers those tools of a translation that which names, in that
// order.
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

// ToolsetOf offers exactly these tools.
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

// Declare returns the declarations in a provider's form, see package
// provider for its names; nothing when there are no tools.
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

// Tokens guesses what the declarations cost.
func (t *Toolset) Tokens() int {
	n := 0
	for _, d := range t.Definitions() {
		n += len(d.Name.Server) + len(d.Name.Tool) + len(d.Description) + len(d.InputSchema) + 60
	}
	return EstimateTokens(n)
}

// Declared returns the name under which a tool is declared.
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

// Call reads a call that a model wrote: its name is led back to the tool and
// its arguments are mended. It reports false when what is returned is not
// what the model wrote (a name that providers refuse, arguments that are not
// an object), so that the turn's native form must not be sent again.
func (t *Toolset) Call(id, name string, arguments []byte) (*ToolCall, bool) {
	c := &ToolCall{ID: id, Name: legalise(name)}
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
	if n, ok := t.tools.Resolve("", name); ok {
		c.Tool = n
		declared := t.Declared(n)
		faithful = faithful && declared == name
		c.Name = declared
		if c.Malformed == "" {
			if _, mended, err := t.tools.Restore(name, args); err == nil {
				c.Arguments = mended
			}
		}
	}
	return c, faithful
}

// maxMalformed bounds what is kept of arguments that could not be read.
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

// legalise makes an invented name one that every provider accepts in a
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

// NewCallID returns an id for a call whose provider gave it none.
func NewCallID() string { return "call_" + strings.ToLower(rand.Text()[:20]) }

// Arguments reads the arguments of a call: a JSON object, or nothing, or an
// object inside a string, which some models write. It reports false for
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

// FormatResult returns a result in a provider's form. With pictures false
// the provider takes none: notes stand for them.
func FormatResult(format string, r *ToolResult, pictures bool) (json.RawMessage, error) {
	content := provider.ReadResult(tool.Result{Raw: r.Content, IsError: r.IsError})
	if !pictures {
		for i := range content.Parts {
			content.Parts[i].Data = ""
		}
	}
	return provider.FormatResult(format, provider.Call{ID: r.CallID, Name: r.Name}, content)
}

// imageOf returns a part's picture, if it is one.
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

// resultSize returns how much text and how many pictures a result has.
func resultSize(content json.RawMessage) (text, images int) {
	c := provider.ReadResult(tool.Result{Raw: content})
	for _, p := range c.Parts {
		if p.Kind == provider.Image && p.Data != "" {
			images++
		}
	}
	return len(c.Text()), images
}
