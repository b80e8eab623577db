package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// The codes of warnings.
const (
	Lowered   = "lowered"  // part of a schema could not be declared
	LeftOut   = "left_out" // a tool could not be declared at all
	OverLimit = "limit"    // tools beyond the limit were left out
)

// Warning describes a loss in a listing.
type Warning struct {
	Code    string   `json:"code"`
	Tool    string   `json:"tool,omitempty"` // server:tool
	Message string   `json:"message"`
	Paths   []string `json:"paths,omitempty"` // the parameters, as a.b[].c
	Tools   []string `json:"tools,omitempty"` // all that were left out
}

// Options control how tools are declared. The zero value is the default.
type Options struct {
	Schema  string // for Gemini: JSONSchema or OpenAPISchema
	Strict  bool   // for OpenAI: schemas for strict mode
	Concise bool   // first sentences instead of complete descriptions
	Limit   int    // maximum number of tools; 0 means the provider's own limit
}

func (o Options) variant(name string) variant {
	return variant{name, o.Schema == OpenAPISchema && name == Gemini, o.Strict, o.Concise}
}

// Declaration is one tool in a provider's format.
type Declaration struct {
	Tool        tool.Name
	Name        string          // the declared name
	Description string          // with notes about what the schema cannot express
	Schema      json.RawMessage // the parameters, in the provider's dialect
	JSON        json.RawMessage // the complete declaration
	Warnings    []Warning
}

// Listing is a set of declarations.
type Listing struct {
	Declarations []Declaration
	Warnings     []Warning

	before, after string
}

// Body returns the listing as one JSON object in the provider's format, with
// its warnings if there are any.
func (l Listing) Body() []byte {
	size := 256
	for _, d := range l.Declarations {
		size += len(d.JSON) + 1
	}
	b := append(make([]byte, 0, size), l.before...)
	for _, d := range l.Declarations {
		b = rawjson.AppendComma(b)
		b = append(b, d.JSON...)
	}
	b = append(b, l.after...)
	if len(l.Warnings) > 0 {
		warnings, _ := json.Marshal(l.Warnings)
		b = append(append(b, `,"warnings":`...), warnings...)
	}
	return append(b, '}')
}

// Tools translates one set of tools into all formats and caches the results.
// Create one for each version of a catalogue. It is safe for concurrent use.
type Tools struct {
	defs  []tool.Definition
	index map[tool.Name]int
	bare  map[string]int // tools by unqualified name; -1 if several have it
	names *Names

	mu       sync.Mutex
	variants map[variant]*translations
	order    []variant // oldest first
}

type variant struct {
	provider string
	openapi  bool
	strict   bool
	concise  bool
}

// translations are the declarations of one variant, by the definition's index;
// each is created on first use.
type translations []atomic.Pointer[translation]

type translation struct {
	decl Declaration
	err  error
}

// maxVariants bounds the cached variants.
const maxVariants = 12

// NewTools prepares the translation of defs; nothing is translated before its
// first use. Translations of unchanged tools are taken from before, the Tools
// of the previous version, which may be nil.
func NewTools(defs []tool.Definition, before *Tools) *Tools {
	t := &Tools{
		defs:     defs,
		index:    make(map[tool.Name]int, len(defs)),
		bare:     make(map[string]int, len(defs)),
		variants: map[variant]*translations{},
	}
	names := make([]tool.Name, len(defs))
	for i, d := range defs {
		names[i] = d.Name
		t.index[d.Name] = i
		if _, taken := t.bare[d.Name.Tool]; taken {
			t.bare[d.Name.Tool] = -1
		} else {
			t.bare[d.Name.Tool] = i
		}
	}
	t.names = newNames(names)
	if before != nil {
		t.reuse(before)
	}
	return t
}

func (t *Tools) reuse(before *Tools) {
	before.mu.Lock()
	defer before.mu.Unlock()
	for _, v := range before.order {
		old := *before.variants[v]
		kept := make(translations, len(t.defs))
		for i, d := range t.defs {
			j, ok := before.index[d.Name]
			if !ok || !bytes.Equal(before.defs[j].Raw, d.Raw) || !bytes.Equal(before.defs[j].InputSchema, d.InputSchema) {
				continue
			}
			if tr := old[j].Load(); tr != nil && tr.decl.Name == t.names.legal[d.Name] {
				kept[i].Store(tr)
			}
		}
		t.variants[v] = &kept
		t.order = append(t.order, v)
	}
}

// Names returns the table of declared names.
func (t *Tools) Names() *Names { return t.names }

// Definition returns a tool's definition.
func (t *Tools) Definition(n tool.Name) (tool.Definition, bool) {
	i, ok := t.index[n]
	if !ok {
		return tool.Definition{}, false
	}
	return t.defs[i], true
}

// Declare returns the declarations of the tools in which, in that order, or of
// all tools if it is nil.
func (t *Tools) Declare(name string, which []tool.Name, o Options) (Listing, error) {
	f, err := find(name)
	if err != nil {
		return Listing{}, err
	}
	if err := f.check(o); err != nil {
		return Listing{}, err
	}
	var indices []int
	if which == nil {
		indices = make([]int, len(t.defs))
		for i := range indices {
			indices[i] = i
		}
	}
	for _, n := range which {
		if i, ok := t.index[n]; ok {
			indices = append(indices, i)
		}
	}
	l := Listing{Declarations: make([]Declaration, 0, len(indices)), before: f.before, after: f.after}
	limit, whose := f.limit, f.name+" takes"
	if o.Limit > 0 && (limit == 0 || o.Limit < limit) {
		limit, whose = o.Limit, "the request asks for"
	}
	kept := t.translations(o.variant(f.name))
	var left []string
	for _, i := range indices {
		if limit > 0 && len(l.Declarations) == limit {
			left = append(left, t.defs[i].Name.String())
			continue
		}
		tr := kept[i].Load()
		if tr == nil {
			tr = t.translate(f, t.defs[i], o)
			kept[i].Store(tr)
		}
		l.Warnings = append(l.Warnings, tr.decl.Warnings...)
		if tr.err == nil {
			l.Declarations = append(l.Declarations, tr.decl)
		}
	}
	if len(left) > 0 {
		l.Warnings = append(l.Warnings, Warning{
			Code:    OverLimit,
			Message: fmt.Sprintf("%s at most %d tools; %d are left out. Narrow the list with server, tags or query", whose, limit, len(left)),
			Tools:   left,
		})
	}
	return l, nil
}

// check returns an error for options that the provider does not have.
func (f *format) check(o Options) error {
	msg := ""
	switch {
	case o.Schema == OpenAPISchema && f.openapi == nil:
		msg = fmt.Sprintf("schema=%s is Gemini's; %s has one form only", OpenAPISchema, f.name)
	case o.Schema != "" && o.Schema != JSONSchema && o.Schema != OpenAPISchema:
		msg = fmt.Sprintf("unknown schema %q; use %s or %s", tool.Shorten(o.Schema, 40), JSONSchema, OpenAPISchema)
	case o.Strict && f.strict == nil:
		msg = fmt.Sprintf("strict is OpenAI's; %s has no such mode here", f.name)
	default:
		return nil
	}
	return &tool.Error{Kind: tool.InvalidRequest, Msg: msg}
}

func (t *Tools) translations(v variant) translations {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept, ok := t.variants[v]; ok {
		return *kept
	}
	if len(t.order) == maxVariants {
		delete(t.variants, t.order[0])
		t.order = t.order[1:]
	}
	kept := make(translations, len(t.defs))
	t.variants[v] = &kept
	t.order = append(t.order, v)
	return kept
}

func (t *Tools) translate(f *format, def tool.Definition, o Options) *translation {
	name, _ := t.names.Legal(def.Name)
	low, err := lower(def.InputSchema, f.dialect(o), o.Concise)
	if err != nil {
		return &translation{err: err, decl: Declaration{Name: name, Warnings: []Warning{{
			Code: LeftOut, Tool: def.Name.String(), Message: "the tool is left out: " + err.Error(),
		}}}}
	}
	d := Declaration{Tool: def.Name, Name: name, Schema: low.schema}
	for _, l := range low.losses {
		d.warn(l)
	}
	d.Description = describeTool(def, low.notes, o.Concise)
	d.JSON = encode(f.declare(d, low, o))
	if i := bytes.Index(d.JSON, d.Schema); i >= 0 { // share the memory
		d.Schema = d.JSON[i : i+len(d.Schema) : i+len(d.Schema)]
	}
	return &translation{decl: d}
}

// warn adds a loss to the warning of its kind.
func (d *Declaration) warn(l loss) {
	for i := range d.Warnings {
		if w := &d.Warnings[i]; w.Message == l.message {
			w.Paths = append(w.Paths, l.path)
			return
		}
	}
	w := Warning{Code: Lowered, Tool: d.Tool.String(), Message: l.message}
	if l.path != "" {
		w.Paths = []string{l.path}
	}
	d.Warnings = append(d.Warnings, w)
}

// describeTool returns a tool's description. It is never empty, because one
// provider requires a description and all models need one.
func describeTool(def tool.Definition, notes []string, concise bool) string {
	text := strings.TrimSpace(strings.ToValidUTF8(def.Description, "�"))
	if concise {
		text = def.Summary(300)
	}
	text = cmp.Or(text, strings.TrimSpace(def.Title), fmt.Sprintf("The tool %s of the server %s.", def.Name.Tool, def.Name.Server))
	var extra string
	if len(notes) > 0 {
		extra = "\n" + tool.Shorten(strings.Join(notes, "\n"), maxDescription/2)
	}
	return tool.Shorten(text, maxDescription-len(extra)) + extra
}

// Resolve returns the tool that a model called: by the declared name, as
// server:tool, or by its unqualified name, in server if given, otherwise if
// only one server has it.
func (t *Tools) Resolve(server, called string) (tool.Name, bool) {
	if server != "" {
		if n := (tool.Name{Server: server, Tool: called}); t.has(n) {
			return n, true
		}
	}
	if n, ok := t.names.Tool(called); ok && (server == "" || n.Server == server) {
		return n, true
	}
	if n, err := tool.ParseName(called); err == nil && t.has(n) && (server == "" || n.Server == server) {
		return n, true
	}
	if i, ok := t.bare[called]; ok && i >= 0 && server == "" {
		return t.defs[i].Name, true
	}
	return tool.Name{}, false
}

func (t *Tools) has(n tool.Name) bool {
	_, ok := t.index[n]
	return ok
}

// Restore converts a model's call back: the declared name into the tool's, and
// the arguments by repairing them against its schema. Valid arguments are
// returned unchanged. Errors that cannot be repaired are left to the
// validation.
func (t *Tools) Restore(called string, arguments json.RawMessage) (tool.Name, json.RawMessage, error) {
	n, ok := t.Resolve("", called)
	if !ok {
		return tool.Name{}, nil, &tool.Error{
			Kind: tool.ToolNotFound,
			Msg:  fmt.Sprintf("there is no tool %q; call one of the declared tools by its exact name", tool.Shorten(called, 128)),
		}
	}
	repaired, err := Repair(t.defs[t.index[n]], arguments)
	return n, repaired, err
}
