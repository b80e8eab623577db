package codemode

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/catalog"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Bounds of declarations, in bytes, levels and schemas.
const (
	maxSignature   = 600
	maxDeclaration = 6000
	maxDescription = 1000
	maxNesting     = 6
	maxSchemas     = 1000
	maxChoices     = 20
)

// Signature returns the type of a tool in one line of TypeScript:
// "(args: {repo: string; labels?: string[]}): Promise<{number: number}>".
func Signature(e *catalog.Entry) string {
	return signature(e, maxSignature, false)
}

func signature(e *catalog.Entry, budget int, comments bool) string {
	in := typeOf(e.InputSchema, budget, comments)
	args := "args: " + in
	if in == "{}" {
		args = ""
	} else if len(slices.Collect(rawjson.Elements(rawjson.Field(e.InputSchema, "required")))) == 0 {
		args = "args?: " + in
	}
	out := "any"
	if len(e.OutputSchema) > 0 {
		out = typeOf(e.OutputSchema, budget, comments)
	}
	return "(" + args + "): Promise<" + out + ">"
}

// declare returns TypeScript declarations of tools, output schemas included.
func declare(entries []*catalog.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		if about := tool.Shorten(strings.ReplaceAll(strings.TrimSpace(e.Description), "*/", "* /"), maxDescription); about != "" {
			fmt.Fprintf(&b, "/** %s */\n", about)
		}
		fmt.Fprintf(&b, "tools%s%s%s\n", member(e.Name.Server), member(e.Name.Tool), signature(e, maxDeclaration, true))
	}
	return b.String()
}

var plainName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

func member(name string) string {
	if plainName.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

// declarer writes the type of one schema within budgets of bytes and of work,
// because schemas may be recursive.
type declarer struct {
	root     json.RawMessage
	budget   int
	schemas  int
	comments bool
}

func typeOf(schema json.RawMessage, budget int, comments bool) string {
	d := &declarer{root: schema, budget: budget, schemas: maxSchemas, comments: comments}
	return d.write(schema, 0)
}

func (d *declarer) write(schema json.RawMessage, depth int) string {
	if d.schemas--; depth > maxNesting || d.schemas < 0 || d.budget < 0 || len(schema) == 0 || schema[0] != '{' {
		return "any"
	}
	for range 4 {
		ref := rawjson.FieldString(schema, "$ref")
		if ref == "" {
			break
		}
		if !strings.HasPrefix(ref, "#") {
			return "any"
		}
		if schema = rawjson.Pointer(d.root, ref[1:]); schema == nil {
			return "any"
		}
	}
	if c := rawjson.Field(schema, "const"); c != nil {
		return literal(c)
	}
	if values := slices.Collect(rawjson.Elements(rawjson.Field(schema, "enum"))); len(values) > 0 && len(values) <= maxChoices {
		words := make([]string, len(values))
		for i, v := range values {
			words[i] = literal(v)
		}
		return strings.Join(words, " | ")
	}
	for _, join := range [][2]string{{"anyOf", " | "}, {"oneOf", " | "}, {"allOf", " & "}} {
		if choices := slices.Collect(rawjson.Elements(rawjson.Field(schema, join[0]))); len(choices) > 0 {
			return d.union(choices, join[1], depth)
		}
	}
	kind := rawjson.Field(schema, "type")
	if len(kind) > 0 && kind[0] == '[' {
		var names []string
		for k := range rawjson.Elements(kind) {
			names = append(names, d.simple(rawjson.FieldString(k), schema, depth))
		}
		return strings.Join(slices.Compact(names), " | ")
	}
	return d.simple(rawjson.FieldString(kind), schema, depth)
}

func (d *declarer) union(choices []json.RawMessage, join string, depth int) string {
	var names []string
	for _, c := range choices[:min(len(choices), maxChoices)] {
		if name := d.write(c, depth+1); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, join)
}

func (d *declarer) simple(kind string, schema json.RawMessage, depth int) string {
	switch kind {
	case "string", "number", "boolean", "null":
		return kind
	case "integer":
		return "number"
	case "array":
		item := d.write(rawjson.Field(schema, "items"), depth+1)
		if strings.ContainsAny(item, "|&") && !strings.HasPrefix(item, "{") {
			item = "(" + item + ")"
		}
		return item + "[]"
	}
	properties := rawjson.Field(schema, "properties")
	if kind != "object" && properties == nil {
		return "any"
	}
	return d.object(schema, properties, depth)
}

func (d *declarer) object(schema, properties json.RawMessage, depth int) string {
	required := map[string]bool{}
	for name := range rawjson.Elements(rawjson.Field(schema, "required")) {
		required[rawjson.FieldString(name)] = true
	}
	var parts []string
	left := 0
	for name, property := range rawjson.Members(properties) {
		if d.budget < 0 {
			left++
			continue
		}
		key := name
		if !plainName.MatchString(name) {
			key = strconv.Quote(tool.Shorten(name, 64))
		}
		if !required[name] {
			key += "?"
		}
		part := key + ": " + d.write(property, depth+1)
		if about := rawjson.FieldString(property, "description"); d.comments && about != "" {
			part = "/** " + strings.ReplaceAll(tool.Shorten(tool.OneLine(about), 200), "*/", "* /") + " */ " + part
		}
		d.budget -= len(part) + 2
		parts = append(parts, part)
	}
	if left > 0 {
		parts = append(parts, fmt.Sprintf("/* %d more */ [key: string]: any", left))
	} else if more := rawjson.Field(schema, "additionalProperties"); len(parts) == 0 && more != nil && string(more) != "false" {
		return "Record<string, " + d.write(more, depth+1) + ">"
	}
	return "{" + strings.Join(parts, "; ") + "}"
}

func literal(value json.RawMessage) string {
	if len(value) > 60 {
		return "any"
	}
	return string(value)
}
