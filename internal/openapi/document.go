package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"

	"go.yaml.in/yaml/v4"

	"junctor/internal/rawjson"
)

// Limits of a document.
const (
	maxDocumentBytes = 32 << 20
	maxOperations    = 5000
	maxFiles         = 100
	maxDepth         = 256
	maxRefChain      = 32
)

// dialect is the version of the specification that a document follows, as far
// as it affects parsing.
type dialect int

const (
	swagger2 dialect = iota
	openapi30
	openapi31 // and later: its schemas are JSON Schema
)

// document is a parsed OpenAPI document or a file that it references.
type document struct {
	raw        json.RawMessage
	dialect    dialect
	file       string                     // path of the file; empty for the main document
	components map[string]json.RawMessage // "#/components/schemas/Pet" → its value
	files      *files
}

// files reads the files that a document references. Only documents that are
// files may reference others.
type files struct {
	root *os.Root
	size int
	read map[string]*document
}

// newDocument parses a document in JSON or YAML.
func newDocument(data []byte) (*document, error) {
	raw, err := toJSON(data)
	if err != nil {
		return nil, err
	}
	d := &document{raw: raw}
	version := rawjson.FieldString(raw, "openapi")
	switch {
	case strings.HasPrefix(version, "3.0"):
		d.dialect = openapi30
	case strings.HasPrefix(version, "3."):
		d.dialect = openapi31
	case version != "":
		return nil, fmt.Errorf("OpenAPI version %q is not supported; use 3.0, 3.1 or 3.2", version)
	case rawjson.FieldString(raw, "swagger") == "2.0" || string(rawjson.Field(raw, "swagger")) == "2.0":
		d.dialect = swagger2
	default:
		return nil, errors.New(`not an OpenAPI document: it has neither "openapi" nor "swagger": "2.0"`)
	}
	d.index()
	return d, nil
}

// index records the locations of the components, so that resolving a reference
// does not scan the document.
func (d *document) index() {
	d.components = map[string]json.RawMessage{}
	add := func(prefix string, group json.RawMessage) {
		for name, value := range rawjson.Members(group) {
			d.components[prefix+rawjson.EscapePointer(name)] = value
		}
	}
	for kind, group := range rawjson.Members(rawjson.Field(d.raw, "components")) {
		add("#/components/"+kind+"/", group)
	}
	for _, kind := range []string{"definitions", "parameters", "responses"} {
		add("#/"+kind+"/", rawjson.Field(d.raw, kind))
	}
}

// toJSON returns the document as valid JSON. Although YAML is a superset of
// JSON, JSON is handled separately: it is checked without being decoded.
func toJSON(data []byte) (json.RawMessage, error) {
	if len(data) > maxDocumentBytes {
		return nil, fmt.Errorf("the document is larger than %d MB", maxDocumentBytes>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 {
		return nil, errors.New("the document is empty")
	}
	if trimmed[0] == '{' {
		if err := rawjson.Check(trimmed, maxDepth); err == nil {
			return trimmed, nil
		} else if json.Valid(trimmed) {
			return nil, err // nested too deeply
		}
	}
	return yamlToJSON(trimmed)
}

// yamlToJSON converts YAML to JSON. Aliases are expanded, so the size of the
// result is checked while it is written: a few lines of nested aliases could
// otherwise exhaust the memory.
func yamlToJSON(data []byte) (json.RawMessage, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, fmt.Errorf("the document is neither JSON nor YAML: %w", err)
	}
	w := yamlWriter{}
	if err := w.write(&node, 0); err != nil {
		return nil, err
	}
	if len(w.out) == 0 || w.out[0] != '{' {
		return nil, errors.New("not an OpenAPI document: it is not an object")
	}
	return w.out, nil
}

type yamlWriter struct{ out []byte }

func (w *yamlWriter) write(n *yaml.Node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the document is nested deeper than %d levels", maxDepth)
	}
	if len(w.out) > maxDocumentBytes {
		return fmt.Errorf("the document is larger than %d MB when its aliases are expanded", maxDocumentBytes>>20)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return errors.New("the document is empty")
		}
		return w.write(n.Content[0], depth)
	case yaml.AliasNode:
		return w.write(n.Alias, depth+1)
	case yaml.SequenceNode:
		w.out = append(w.out, '[')
		for _, c := range n.Content {
			w.out = rawjson.AppendComma(w.out)
			if err := w.write(c, depth+1); err != nil {
				return err
			}
		}
		w.out = append(w.out, ']')
	case yaml.MappingNode:
		return w.mapping(n, depth)
	default:
		return w.scalar(n)
	}
	return nil
}

// mapping writes an object. Merge keys ("<<") are expanded after the object's
// own members. Of several members with the same name, only the first is
// written, as the scanner would find it first.
func (w *yamlWriter) mapping(n *yaml.Node, depth int) error {
	w.out = append(w.out, '{')
	seen := map[string]bool{}
	var members func(n *yaml.Node, depth int) error
	members = func(n *yaml.Node, depth int) error {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if depth > maxDepth {
			return fmt.Errorf("the document is nested deeper than %d levels", maxDepth)
		}
		var merged []*yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Tag == "!!merge" {
				merged = append(merged, value)
				continue
			}
			if seen[key.Value] {
				continue
			}
			seen[key.Value] = true
			w.out = rawjson.AppendComma(w.out)
			w.out = rawjson.AppendQuoted(w.out, strings.ToValidUTF8(key.Value, "\ufffd"))
			w.out = append(w.out, ':')
			if err := w.write(value, depth+1); err != nil {
				return err
			}
		}
		for _, m := range merged {
			if m.Kind == yaml.SequenceNode {
				for _, c := range m.Content {
					if err := members(c, depth+1); err != nil {
						return err
					}
				}
			} else if err := members(m, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := members(n, depth); err != nil {
		return err
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *yamlWriter) scalar(n *yaml.Node) error {
	if n.Tag == "!!str" {
		w.out = rawjson.AppendQuoted(w.out, strings.ToValidUTF8(n.Value, "\ufffd"))
		return nil
	}
	var value any = n.Value
	switch n.ShortTag() {
	case "!!null", "!!bool", "!!int", "!!float":
		if json.Valid([]byte(n.Value)) { // preserves the digits of a number
			w.out = append(w.out, n.Value...)
			return nil
		}
		if err := n.Decode(&value); err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
	}
	text, err := json.Marshal(value)
	if err != nil { // .inf and .nan
		text, err = json.Marshal(n.Value)
	}
	if err != nil {
		return err
	}
	w.out = append(w.out, text...)
	return nil
}

// resolve follows references until it finds a value without one, and returns
// the value and its document.
func (d *document) resolve(raw json.RawMessage) (json.RawMessage, *document, error) {
	for range maxRefChain {
		ref := rawjson.FieldString(raw, "$ref")
		if ref == "" {
			return raw, d, nil
		}
		var err error
		if raw, d, err = d.lookup(ref); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errors.New("the references are circular or too deeply chained")
}

// lookup returns the value that a reference points to, and its document.
func (d *document) lookup(ref string) (json.RawMessage, *document, error) {
	file, pointer, _ := strings.Cut(ref, "#")
	if file != "" {
		var err error
		if d, err = d.open(file); err != nil {
			return nil, nil, fmt.Errorf("$ref %q: %w", ref, err)
		}
	}
	if value, ok := d.components["#"+pointer]; ok {
		return value, d, nil
	}
	value := rawjson.Pointer(d.raw, pointer)
	if value == nil {
		return nil, nil, fmt.Errorf("$ref %q: the document does not contain it", ref)
	}
	return value, d, nil
}

// open reads a file that the document references.
func (d *document) open(name string) (*document, error) {
	if d.files == nil {
		return nil, errors.New("refers to another file; only a document loaded from a file may do that")
	}
	if u, err := url.Parse(name); err != nil || u.Scheme != "" || u.Host != "" {
		return nil, errors.New("refers to another address; only files beside the document are read")
	}
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	name = path.Join(path.Dir(d.file), name)
	if f, ok := d.files.read[name]; ok {
		return f, nil
	}
	if len(d.files.read) >= maxFiles {
		return nil, fmt.Errorf("refers to more than %d files", maxFiles)
	}
	data, err := d.files.root.ReadFile(name) // os.Root prevents access outside the document's folder
	if err != nil {
		return nil, err
	}
	if d.files.size += len(data); d.files.size > maxDocumentBytes {
		return nil, fmt.Errorf("the document and its files are larger than %d MB", maxDocumentBytes>>20)
	}
	raw, err := toJSON(data)
	if err != nil {
		return nil, err
	}
	f := &document{raw: raw, dialect: d.dialect, file: name, files: d.files}
	f.index()
	d.files.read[name] = f
	return f, nil
}
