package app

import (
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"junctor/internal/agentify"
	"junctor/internal/approval"
	"junctor/internal/audit"
	"junctor/internal/auth"
	"junctor/internal/chat/wire"
	"junctor/internal/clients"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/executor"
	"junctor/internal/httperr"
	"junctor/internal/llm"
	"junctor/internal/mcptrace"
	"junctor/internal/profile"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/waiting"
)

// schemaNames maps types to names in the document if their own name is unclear
// outside the package.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[agentify.Answer]():       "TaskAnswer",
	reflect.TypeFor[agentify.Context]():      "TaskContext",
	reflect.TypeFor[approval.Info]():         "StandingApproval",
	reflect.TypeFor[approval.Request]():      "ApprovalRequest",
	reflect.TypeFor[audit.Entry]():           "AuditEntry",
	reflect.TypeFor[auth.SessionInfo]():      "PageSession",
	reflect.TypeFor[wire.SessionInfo]():      "ChatSession",
	reflect.TypeFor[clients.State]():         "CandidateState",
	reflect.TypeFor[conversation]():          "Conversation",
	reflect.TypeFor[control.ServerState]():   "LiveServer",
	reflect.TypeFor[control.Tool]():          "ToolInfo",
	reflect.TypeFor[control.ToolList]():      "ToolInfoList",
	reflect.TypeFor[executor.State]():        "CircuitState",
	reflect.TypeFor[executor.Stats]():        "ToolStats",
	reflect.TypeFor[mcptrace.Entry]():        "TraceEntry",
	reflect.TypeFor[profile.Config]():        "ProfileConfig",
	reflect.TypeFor[store.CallJSON]():        "Call",
	reflect.TypeFor[store.CallSummaryJSON](): "CallSummary",
	reflect.TypeFor[store.StageJSON]():       "CallStage",
	reflect.TypeFor[store.Status]():          "CallStatus",
	reflect.TypeFor[telemetry.LogEntry]():    "GatewayLogEntry",
	reflect.TypeFor[llm.Provider]():          "ModelProvider",
	reflect.TypeFor[tool.Rate]():             "CallRate",
	reflect.TypeFor[tool.Kind]():             "ErrorCode",
	reflect.TypeFor[upstream.State]():        "ServerState",
	reflect.TypeFor[waiting.Failure]():       "WaitingFailure",
	reflect.TypeFor[waiting.Input]():         "WaitingInput",
	reflect.TypeFor[waiting.Record]():        "WaitingCall",
	reflect.TypeFor[waiting.Status]():        "WaitingStatus",
}

// schemaTypes maps types, and fields of type any, to the types they are
// documented as.
var (
	schemaTypes = map[reflect.Type]reflect.Type{
		reflect.TypeFor[store.Call]():        reflect.TypeFor[store.CallJSON](),
		reflect.TypeFor[store.CallSummary](): reflect.TypeFor[store.CallSummaryJSON](),
	}
	schemaFields = map[string]reflect.Type{
		"control.Candidate.State":        reflect.TypeFor[clients.State](),
		"control.Configuration.Place":    reflect.TypeFor[config.Place](),
		"control.Configuration.Settings": reflect.TypeFor[[]config.Setting](),
	}
)

// schemaMaker makes JSON Schemas from Go types. It takes descriptions and the
// values of string enumerations from the source.
type schemaMaker struct {
	t          *testing.T
	types      map[string]reflect.Type
	components map[string]any
	packages   map[string]*packageSource // by import path
}

// packageSource is the information from the source of a package.
type packageSource struct {
	docs   map[string]string   // by type, and by type and field
	values map[string][]string // values of constants, by type
}

func newSchemaMaker(t *testing.T) *schemaMaker {
	return &schemaMaker{t: t, types: map[string]reflect.Type{}, components: map[string]any{}, packages: map[string]*packageSource{}}
}

// schema returns the schema of a type. Named structs and enumerations become
// components.
func (m *schemaMaker) schema(t reflect.Type) any {
	if other := schemaTypes[t]; other != nil {
		t = other
	}
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return true
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[httperr.Body]():
		return map[string]any{"$ref": "#/components/schemas/Error"}
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return m.schema(t.Elem())
	case reflect.Interface:
		return true
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		if values := m.source(t).values[t.Name()]; len(values) > 1 {
			return m.component(t, func() any { return map[string]any{"type": "string", "enum": values} })
		}
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": m.schema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": m.schema(t.Elem())}
	case reflect.Struct:
		if t.Name() == "" {
			return m.object(t)
		}
		return m.component(t, func() any { return m.object(t) })
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
		return map[string]any{"type": "integer"}
	}
	m.t.Fatalf("no schema for the type %v", t)
	return nil
}

// component adds a component if it does not exist and returns a reference to
// it.
func (m *schemaMaker) component(t reflect.Type, make func() any) any {
	name := schemaNames[t]
	if name == "" {
		name = t.Name()
	}
	if other := m.types[name]; other != nil && other != t {
		m.t.Fatalf("%v and %v are both named %s; give one of them a name in schemaNames", t, other, name)
	}
	if m.types[name] == nil {
		m.types[name] = t
		s := make().(map[string]any)
		if doc := m.source(t).docs[t.Name()]; doc != "" {
			s["description"] = doc
		}
		m.components[name] = s
	}
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

func (m *schemaMaker) object(t reflect.Type) any {
	properties, required := map[string]any{}, []string{}
	m.fields(t, properties, &required)
	slices.Sort(required)
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func (m *schemaMaker) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for f := range slices.Values(reflect.VisibleFields(t)) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if len(f.Index) > 1 || tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && tag == "" {
			m.fields(f.Type, properties, required)
			continue
		}
		ft := f.Type
		if other := schemaFields[t.String()+"."+f.Name]; other != nil {
			ft = other
		}
		s := m.schema(ft)
		optional := strings.Contains(options, "omit")
		if ft.Kind() == reflect.Pointer && !optional {
			s = map[string]any{"oneOf": []any{s, map[string]any{"type": "null"}}}
		}
		if doc := m.source(t).docs[t.Name()+"."+f.Name]; doc != "" {
			switch object := s.(type) {
			case map[string]any:
				object["description"] = doc
			case bool:
				s = map[string]any{"description": doc}
			}
		}
		properties[tag] = s
		if !optional {
			*required = append(*required, tag)
		}
	}
}

// source reads the source of the package of a type.
func (m *schemaMaker) source(t reflect.Type) *packageSource {
	if s := m.packages[t.PkgPath()]; s != nil {
		return s
	}
	s := &packageSource{docs: map[string]string{}, values: map[string][]string{}}
	m.packages[t.PkgPath()] = s
	dir, ours := strings.CutPrefix(t.PkgPath(), "junctor/internal/")
	if !ours {
		return s
	}
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			m.t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				s.add(d)
			}
		}
	}
	return s
}

func (s *packageSource) add(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.docs[spec.Name.Name] = text(spec.Doc, d.Doc)
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range st.Fields.List {
					for _, name := range field.Names {
						s.docs[spec.Name.Name+"."+name.Name] = text(field.Doc, field.Comment)
					}
				}
			}
		case *ast.ValueSpec:
			of, ok := spec.Type.(*ast.Ident)
			if !ok || d.Tok != token.CONST || len(spec.Values) != 1 || spec.Names[0].Name == "StatusNotOK" { // does not occur in records
				continue
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if value, err := strconv.Unquote(lit.Value); err == nil && value != "" {
					s.values[of.Name] = append(s.values[of.Name], value)
				}
			}
		}
	}
}

// text returns the first non-empty comment as one line.
func text(comments ...*ast.CommentGroup) string {
	for _, c := range comments {
		if text := strings.Join(strings.Fields(c.Text()), " "); text != "" {
			return text
		}
	}
	return ""
}
