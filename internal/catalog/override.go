package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// override is what the rules that match a tool change about its definition.
type override struct {
	name, title, description string
	arguments                map[string]Argument
}

func (o *override) add(r ToolRule) {
	if r.Name != "" {
		o.name = r.Name
	}
	if r.Title != "" {
		o.title = r.Title
	}
	if r.Description != "" {
		o.description = r.Description
	}
	if len(r.Arguments) > 0 {
		o.arguments = maps.Clone(o.arguments)
		if o.arguments == nil {
			o.arguments = map[string]Argument{}
		}
		maps.Copy(o.arguments, r.Arguments)
	}
}

func (o *override) empty() bool {
	return o.name == "" && o.title == "" && o.description == "" && len(o.arguments) == 0
}

// apply returns the definition that callers see.
func (o *override) apply(d tool.Definition) (tool.Definition, error) {
	raw := d.Raw
	set := func(value any, path ...string) {
		if b, err := json.Marshal(value); err == nil { // text, and values of the configuration
			raw = rawjson.SetField(raw, b, path...)
		}
	}
	for key, text := range map[string]string{"name": o.name, "title": o.title, "description": o.description} {
		if text != "" {
			set(text, key)
		}
	}
	if len(o.arguments) > 0 {
		raw = rawjson.SetField(raw, o.inputSchema(d.InputSchema), "inputSchema")
	}
	return tool.ParseDefinition(d.Name.Server, raw)
}

// inputSchema returns the schema without the arguments that callers do not set,
// and with the defaults of the others.
func (o *override) inputSchema(schema json.RawMessage) json.RawMessage {
	for _, name := range slices.Sorted(maps.Keys(o.arguments)) {
		switch a := o.arguments[name]; {
		case a.closed():
			schema = rawjson.DeleteField(schema, "properties", name)
		case a.Default != nil && rawjson.IsObject(rawjson.Field(schema, "properties", name)):
			schema = rawjson.SetField(schema, a.Default, "properties", name, "default")
		}
	}
	var required []string
	if json.Unmarshal(rawjson.Field(schema, "required"), &required) != nil {
		return schema
	}
	kept := slices.DeleteFunc(slices.Clone(required), func(name string) bool {
		a, ok := o.arguments[name]
		return ok && (a.closed() || a.Default != nil)
	})
	if len(kept) == len(required) {
		return schema
	}
	if len(kept) == 0 {
		return rawjson.DeleteField(schema, "required")
	}
	b, err := json.Marshal(kept)
	if err != nil {
		return schema
	}
	return rawjson.SetField(schema, b, "required")
}

// Complete returns the arguments to send to the upstream for those of a caller:
// with the fixed values of rules, and their defaults for missing arguments. It
// returns an error if the caller sets an argument that it may not set.
func (e *Entry) Complete(arguments json.RawMessage) (json.RawMessage, error) {
	if len(e.override.arguments) == 0 {
		return arguments, nil
	}
	values := map[string]json.RawMessage{}
	if len(arguments) > 0 && json.Unmarshal(arguments, &values) != nil || values == nil {
		values = map[string]json.RawMessage{}
	}
	for name, a := range e.override.arguments {
		if a.closed() {
			for given := range values {
				// Some servers read names without regard to case.
				if strings.EqualFold(given, name) {
					return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("the argument %q of %s cannot be set; leave it out", given, e.Name)}
				}
			}
		}
		if a.Fixed != nil {
			values[name] = a.Fixed
		} else if _, given := values[name]; !given && a.Default != nil {
			values[name] = a.Default
		}
	}
	return json.Marshal(values)
}

// Overridden reports whether rules override the upstream's definition.
func (e *Entry) Overridden() bool { return !e.override.empty() }

// UsableBy reports whether the caller may see and call the tool: it has
// permission for the tool's original name, and the tool is listed for it.
func (e *Entry) UsableBy(caller *tool.Caller) bool {
	return caller.MayUse(e.Original.Name) && e.ListedFor(caller)
}

// ListedFor reports whether the upstream lists the tool for the caller. An
// upstream to which each caller logs in may list different tools for each.
func (e *Entry) ListedFor(caller *tool.Caller) bool {
	if e.callers == nil {
		return true
	}
	_, ok := slices.BinarySearch(e.callers, caller.ID)
	return ok
}

// Fingerprint returns the fingerprint of the upstream's definition, without
// overrides.
func (e *Entry) Fingerprint() string { return e.Original.Fingerprint() }
