package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"junctor/internal/rawjson"
)

// maxDescription bounds the description of a tool, in bytes.
const maxDescription = 4000

// operation is an operation of the service: the definition of its tool and the
// information for its requests.
type operation struct {
	name       string
	definition json.RawMessage // an entry of tools/list
	method     string
	path       string // the path template
	server     string // replaces the service's base URL; usually empty
	parameters []parameter
	body       *body
	accept     string
	structured bool                  // has an output schema
	wrapped    bool                  // structured results are under "result"
	security   []map[string][]string // alternatives: scheme → scopes; nil means the document's
	deprecated bool
}

// idempotent reports whether a request may be retried.
func (o *operation) idempotent() bool {
	return o.method != http.MethodPost && o.method != http.MethodPatch
}

// parameter is a parameter of the request outside of its body.
type parameter struct {
	argument string // the name of the tool's argument
	name     string
	in       string // path, query, header or cookie
	style    string
	explode  bool
	reserved bool // allowReserved
	json     bool // serialized as JSON (a parameter with content)
	required bool
}

// body is the body of a request.
type body struct {
	mediaType string
	required  bool
	argument  string  // the argument for the whole body; empty if there are fields
	fields    []field // the arguments for members of the body
}

type field struct {
	argument, name string
	mediaType      string // of a part of a multipart body
	binary         bool   // a base64 argument
	style          parameter
}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

// reader reads operations from a document.
type reader struct {
	names map[string]bool
}

// operations returns the operations that keep selects, and a message for each
// that is skipped.
func operations(d *document, keep func(id, method, path string) bool) ([]*operation, []string, error) {
	r := reader{names: map[string]bool{}}
	var list []*operation
	var skipped []string
	for path, raw := range rawjson.Members(rawjson.Field(d.raw, "paths")) {
		if !strings.HasPrefix(path, "/") {
			continue // an extension
		}
		item, doc, err := d.resolve(raw)
		if err != nil {
			skipped = append(skipped, path+": "+err.Error())
			continue
		}
		for _, method := range methods {
			op := rawjson.Field(item, method)
			if len(op) == 0 || op[0] != '{' {
				continue
			}
			hint := hints(op)
			if hint.excluded || !keep(rawjson.FieldString(op, "operationId"), strings.ToUpper(method), path) {
				continue
			}
			if len(list) == maxOperations {
				return nil, nil, fmt.Errorf("the document has more than %d operations; choose some with operations.include", maxOperations)
			}
			o, err := r.operation(source{doc, item, op, path, method, hint})
			if err != nil {
				skipped = append(skipped, fmt.Sprintf("%s %s: %s", strings.ToUpper(method), path, err))
				continue
			}
			list = append(list, o)
		}
	}
	return list, skipped, nil
}

// source is the location of an operation in its document.
type source struct {
	doc          *document
	item, op     json.RawMessage // the path item and the operation
	path, method string
	hint         hint
}

// hint has the settings of a document for tools: x-mcp and the equivalent
// extension of Speakeasy.
type hint struct {
	name, description string
	excluded          bool
}

func hints(op json.RawMessage) hint {
	for _, key := range []string{"x-mcp", "x-speakeasy-mcp"} {
		switch raw := rawjson.Field(op, key); {
		case string(raw) == "false":
			return hint{excluded: true}
		case len(raw) > 0 && raw[0] == '{':
			return hint{
				name: rawjson.FieldString(raw, "name"), description: rawjson.FieldString(raw, "description"),
				excluded: isTrue(rawjson.Field(raw, "disabled")) || isTrue(rawjson.Field(raw, "exclude")),
			}
		}
	}
	return hint{}
}

func (r reader) operation(s source) (*operation, error) {
	o := &operation{
		method: strings.ToUpper(s.method), path: s.path, deprecated: isTrue(rawjson.Field(s.op, "deprecated")),
		security: requirements(rawjson.Field(s.op, "security")),
	}
	o.server = cmp.Or(serverURL(rawjson.Field(s.op, "servers")), serverURL(rawjson.Field(s.item, "servers")))
	in, err := r.inputs(s)
	if err != nil {
		return nil, err
	}
	if err := in.matchPath(s.path); err != nil {
		return nil, err
	}
	o.parameters, o.body = in.parameters, in.body
	input, err := within(maxInputSchema, false, in.schema)
	if err != nil {
		return nil, err
	}
	answer := r.response(s)
	o.accept, o.structured, o.wrapped = answer.accept, len(answer.schema) > 0, answer.wrapped
	o.name = r.uniqueName(s)
	o.definition, err = define(o, s, input, answer)
	return o, err
}

// uniqueName returns the name of the tool, from the hint, the operationId, or
// method and path.
func (r reader) uniqueName(s source) string {
	base := sanitize(cmp.Or(s.hint.name, rawjson.FieldString(s.op, "operationId"), s.method+strings.NewReplacer("{", "", "}", "").Replace(s.path)), 64)
	unique := base
	for n := 2; r.names[unique]; n++ {
		suffix := fmt.Sprintf("_%d", n)
		unique = base[:min(len(base), 64-len(suffix))] + suffix
	}
	r.names[unique] = true
	return unique
}

// sanitize replaces characters that model providers reject in names, and
// limits the length.
func sanitize(name string, limit int) string {
	var b strings.Builder
	gap := false
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(c)
		default:
			gap = true
		}
	}
	out := b.String()
	if out == "" {
		return "unnamed"
	}
	return out[:min(len(out), limit)]
}

// define returns the definition of the tool.
func define(o *operation, s source, input json.RawMessage, answer response) (json.RawMessage, error) {
	raw, err := rawjson.Marshal(struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		Annotations json.RawMessage `json:"annotations"`
	}{o.name, firstLine(rawjson.FieldString(s.op, "summary")), describe(o, s, answer), input, answer.schema, json.RawMessage(annotations(o.method))})
	return bytes.Clone(raw), err // drop the unused capacity of the buffer
}

// annotations returns the tool annotations implied by the method.
func annotations(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "QUERY":
		return `{"readOnlyHint":true,"openWorldHint":true}`
	case http.MethodPut:
		return `{"readOnlyHint":false,"idempotentHint":true,"openWorldHint":true}`
	case http.MethodDelete:
		return `{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":true,"openWorldHint":true}`
	}
	return `{"readOnlyHint":false,"openWorldHint":true}`
}

func describe(o *operation, s source, answer response) string {
	summary := strings.TrimSpace(rawjson.FieldString(s.op, "summary"))
	long := strings.TrimSpace(rawjson.FieldString(s.op, "description"))
	if s.hint.description != "" {
		summary, long = "", s.hint.description
	}
	var parts []string
	if o.deprecated {
		parts = append(parts, "Deprecated.")
	}
	if summary != "" && !strings.HasPrefix(long, summary) {
		parts = append(parts, sentence(summary))
	}
	if long != "" {
		parts = append(parts, long)
	}
	if len(parts) == 0 {
		parts = append(parts, o.method+" "+o.path)
	}
	out := cut(strings.Join(parts, "\n\n"), maxDescription)
	if answer.description != "" {
		out += "\n\nReturns: " + sentence(answer.description)
	}
	return out
}

func sentence(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

// firstLine returns the first line of a text from a document, shortened, as
// valid UTF-8.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return cut(strings.TrimSpace(line), 200)
}

// cut shortens a text without splitting a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// requirements parses a list of security requirements; nil if there is none.
func requirements(raw json.RawMessage) []map[string][]string {
	var list []map[string][]string
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// serverURL returns the URL of the first server in a list, with variables
// replaced by their defaults.
func serverURL(servers json.RawMessage) string {
	for s := range rawjson.Elements(servers) {
		u := rawjson.FieldString(s, "url")
		for name, v := range rawjson.Members(rawjson.Field(s, "variables")) {
			u = strings.ReplaceAll(u, "{"+name+"}", rawjson.FieldString(v, "default"))
		}
		return u
	}
	return ""
}
