package provider

import "slices"

// anthropicSchema is the subset of the API: JSON Schema 2020-12, but no
// combinations at the root and no unusual property keys.
var anthropicSchema = func() *dialect {
	d := *everything
	d.key = dottedKey
	return &d
}()

// anthropic is the messages API.
var anthropic = format{
	name: Anthropic, before: `{"tools":[`, after: `]`, schema: anthropicSchema, result: anthropicResult,
	declare: func(d Declaration, _ lowered, _ Options) *object {
		return obj("name", d.Name, "description", d.Description, "input_schema", d.Schema)
	},
	call: func(o *object) (Call, bool) {
		if !o.isKind("tool_use") {
			return Call{}, false
		}
		return named(o, "id", "input")
	},
}

// anthropicResult sends only text if the tool failed, because the API accepts
// nothing else with is_error.
func anthropicResult(c Call, content Content) *object {
	parts := content.ordered(func(p Part) bool {
		return !content.IsError && (p.Kind == Image && imageTypes[p.MIMEType] && len(p.Data) <= maxImage || p.Kind == File && p.MIMEType == "application/pdf")
	})
	if !slices.ContainsFunc(parts, isText) {
		text := string(content.Structured)
		if text == "" && content.IsError {
			text = content.ErrorText()
		}
		if text != "" { // the API refuses empty text
			parts = slices.Insert(parts, 0, Part{Kind: Text, Text: text})
		}
	}
	blocks := []any{}
	for _, p := range parts {
		if isText(p) {
			blocks = append(blocks, obj("type", "text", "text", p.Text))
			continue
		}
		kind := "image"
		if p.Kind == File {
			kind = "document"
		}
		blocks = append(blocks, obj("type", kind, "source", obj("type", "base64", "media_type", p.MIMEType, "data", p.Data)))
	}
	out := obj("type", "tool_result", "tool_use_id", c.ID, "content", blocks)
	if content.IsError {
		out.set("is_error", true)
	}
	return out
}
