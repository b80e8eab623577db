package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// generateReference returns the settings as Markdown tables, generated from the
// same structs as the schema.
func generateReference() string {
	var b strings.Builder
	fields := describeConfig()
	b.WriteString("Changes to the file take effect in the running gateway within a second. Changes to settings marked \"Needs a restart\" take effect at the next start; the log names these settings.\n\n")
	b.WriteString("### At the top of the file\n\n")
	table(&b, fields, true)
	for _, f := range fields {
		if len(f.fields) == 0 {
			continue
		}
		switch f.key {
		case "mcpServers":
			b.WriteString("\n### A server: `mcpServers.NAME`\n\n")
		case "llm":
			b.WriteString("\n### A model: `llm`\n\n")
		case "toolRules":
			b.WriteString("\n### A rule: `toolRules[]`\n\n")
		case "profiles":
			b.WriteString("\n### A profile: `profiles.NAME`\n\n")
		default:
			fmt.Fprintf(&b, "\n### `%s`\n\n", f.key)
		}
		table(&b, f.fields, false)
	}
	b.WriteString("\n### Keys of other programs\n\nJunctor converts these keys of other programs to its own:\n\n| key of a server | converted to | |\n| --- | --- | --- |\n")
	for _, k := range convertedKeys() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", k.name, k.to, k.doc)
	}
	for _, name := range slices.Sorted(maps.Keys(serverAliases)) {
		a := serverAliases[name]
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", name, a.to, a.doc)
	}
	b.WriteString("\nThese keys are recognized, have no effect, and are reported once: ")
	var names []string
	for _, name := range slices.Sorted(maps.Keys(foreignServer)) {
		names = append(names, "`"+name+"`")
	}
	b.WriteString(strings.Join(names, ", ") + ".\n")
	return b.String()
}

// table writes one table; the keys of nested objects are joined with dots. At
// the top, sections are only listed: each has its own table.
func table(b *strings.Builder, fields []field, top bool) {
	b.WriteString("| key | value | default | what |\n| --- | --- | --- | --- |\n")
	rows(b, "", fields, top)
}

func rows(b *strings.Builder, prefix string, fields []field, top bool) {
	for _, f := range fields {
		if f.key == "name" && fieldOwner(f) == "server" {
			continue
		}
		if !top && len(f.fields) > 0 {
			suffix := "."
			switch f.typ.Kind() {
			case reflect.Slice:
				suffix = "[]."
			case reflect.Map:
				suffix = ".NAME."
			}
			fmt.Fprintf(b, "| `%s%s` | %s | | %s |\n", prefix, f.key, f.typeName(), f.text())
			rows(b, prefix+f.key+suffix, f.fields, false)
			continue
		}
		value := f.typeName()
		switch {
		case top && f.key == "mcpServers":
			value = "object of servers, or a list"
		case top && f.key == "llm":
			value = "object, or a list"
		}
		if len(f.words) > 0 {
			value = "`" + strings.Join(f.words, "`, `") + "`"
			if f.key == "transport" {
				value = "`auto`, `stdio`, `http`, `sse`"
			}
		}
		def := ""
		if f.def != nil && !(strings.Contains(f.doc, "Default:") && reflect.ValueOf(f.def).IsZero()) {
			def = fmt.Sprintf("`%v`", f.def)
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", prefix, f.key, value, def, strings.ReplaceAll(f.text(), "|", `\|`))
	}
}

// text returns the description of the setting, and whether a change needs a
// restart.
func (f field) text() string {
	if f.apply == applyRestart {
		return f.doc + " Needs a restart."
	}
	return f.doc
}

// fieldOwner returns "server" for the name of a server, which is a key in the
// file, and "" for other fields.
func fieldOwner(f field) string {
	if strings.HasPrefix(f.doc, "The name of the upstream") {
		return "server"
	}
	return ""
}
