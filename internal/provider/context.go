package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// ContextGroup is one server's part of a prompt.
type ContextGroup struct {
	Server   string
	Guidance string // the server's instructions; may be empty
	Tools    []ContextTool
}

// ContextTool is one tool of a group. Tools with the same first tag are listed
// together.
type ContextTool struct {
	Name tool.Name
	Tags []string
}

// Prompt is a description of tools as text for a model.
type Prompt struct {
	Text   string
	Tools  int
	Tokens int // an estimate; tokenizers differ between providers
}

// estimateTokens estimates the tokens of a text: 3.5 bytes per token.
func estimateTokens(bytes int) int { return (bytes*2 + 6) / 7 }

// Context describes tools as text, with the names under which a provider's
// model would call them: one line for each if concise, otherwise with all
// parameters.
func (t *Tools) Context(name string, groups []ContextGroup, concise bool) (Prompt, error) {
	if _, err := find(name); err != nil {
		return Prompt{}, err
	}
	var b strings.Builder
	count := 0
	for _, g := range groups {
		if len(g.Tools) == 0 {
			continue
		}
		switch {
		case b.Len() > 0:
			b.WriteByte('\n')
		case concise:
			b.WriteString("Parameters: * is required, ? optional; without a type, text.\n\n")
		}
		fmt.Fprintf(&b, "# %s\n", g.Server)
		if g.Guidance != "" && !concise {
			fmt.Fprintf(&b, "%s\n", strings.TrimSpace(g.Guidance))
		}
		tag := ""
		for _, ct := range byTag(g.Tools) {
			if first := firstTag(ct); first != tag {
				tag = first
				fmt.Fprintf(&b, "## %s\n", heading(tag))
			}
			i, ok := t.index[ct.Name]
			if !ok {
				continue
			}
			t.describe(&b, t.defs[i], concise)
			count++
		}
	}
	return Prompt{Text: b.String(), Tools: count, Tokens: estimateTokens(b.Len())}, nil
}

func firstTag(t ContextTool) string {
	if len(t.Tags) == 0 {
		return ""
	}
	return t.Tags[0]
}

func heading(tag string) string { return cmp.Or(tag, "other") }

// byTag groups tools with the same tag, those without one last, and otherwise
// keeps the order.
func byTag(tools []ContextTool) []ContextTool {
	tools = slices.Clone(tools)
	slices.SortStableFunc(tools, func(a, b ContextTool) int {
		x, y := firstTag(a), firstTag(b)
		switch {
		case x == y:
			return 0
		case x == "":
			return 1
		case y == "":
			return -1
		}
		return strings.Compare(x, y)
	})
	return tools
}

func (t *Tools) describe(b *strings.Builder, def tool.Definition, concise bool) {
	name, _ := t.names.Legal(def.Name)
	if concise {
		fmt.Fprintf(b, "- %s(%s): %s\n", name, def.Signature(), describeTool(def, nil, true))
		return
	}
	doc, root := readRoot(def)
	fmt.Fprintf(b, "- %s\n  %s\n", name, strings.ReplaceAll(describeTool(def, nil, false), "\n", "\n  "))
	if root == nil {
		return
	}
	for _, p := range root.props {
		f := doc.flatten(p.node)
		if f.never {
			continue
		}
		need := "optional"
		if root.requires(p.key) {
			need = "required"
		}
		fmt.Fprintf(b, "  - %s (%s, %s)", p.key, typeText(doc, p.node, 3), need)
		if f.description != "" {
			fmt.Fprintf(b, ": %s", strings.Join(strings.Fields(tool.Shorten(f.description, maxRemark)), " "))
		}
		if f.hasDefault {
			fmt.Fprintf(b, " Default: %s.", tool.Shorten(string(encode(f.def)), 80))
		}
		b.WriteByte('\n')
	}
}

// readRoot returns the root of a tool's parameters with its alternatives
// merged.
func readRoot(def tool.Definition) (*document, *node) {
	v, err := parseJSON(def.InputSchema)
	raw, ok := v.(*object)
	if err != nil || !ok {
		return nil, nil
	}
	l := &lowering{doc: compile(raw), d: everything, stack: map[*node]int{}, seen: map[loss]bool{}}
	root, _, err := l.foldRoot()
	if err != nil {
		return nil, nil
	}
	return l.doc, root
}

// typeText returns a short name of a type, up to a depth.
func typeText(d *document, n *node, depth int) string {
	f := d.flatten(n)
	if f.hasEnum && len(f.enum) > 0 {
		var texts []string
		for i, v := range f.enum {
			if i == 12 {
				texts = append(texts, "…")
				break
			}
			texts = append(texts, tool.Shorten(string(encode(v)), 40))
		}
		return strings.Join(texts, "|")
	}
	t := f.types
	if t == 0 {
		t = f.implied()
	}
	var texts []string
	for _, name := range t.names() {
		switch typeWords[name] {
		case tArray:
			inner := "any"
			if f.items != nil && depth > 0 {
				inner = typeText(d, f.items, depth-1)
			}
			if strings.Contains(inner, "|") {
				inner = "(" + inner + ")"
			}
			name = inner + "[]"
		case tObject:
			if depth > 0 && len(f.props) > 0 {
				var fields []string
				for _, p := range f.props {
					mark := "?"
					if f.requires(p.key) {
						mark = ""
					}
					fields = append(fields, p.key+mark+": "+typeText(d, p.node, depth-1))
				}
				name = "{" + strings.Join(fields, ", ") + "}"
			} else if f.additional != nil && depth > 0 && !d.flatten(f.additional).never {
				name = "{[key]: " + typeText(d, f.additional, depth-1) + "}"
			}
		}
		texts = append(texts, name)
	}
	if len(texts) == 0 && depth > 0 {
		for _, alt := range f.alts {
			for _, b := range alt.nodes {
				if text := typeText(d, b, depth-1); !slices.Contains(texts, text) {
					texts = append(texts, text)
				}
			}
		}
	}
	if len(texts) == 0 {
		return "any"
	}
	return tool.Shorten(strings.Join(texts, "|"), 400)
}
