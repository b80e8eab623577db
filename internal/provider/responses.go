package provider

import (
	"cmp"
	"slices"
)

// responses is OpenAI's responses API.
var responses = format{
	name: OpenAIResponses, limit: 128, before: `{"tools":[`, after: `]`,
	schema: openaiSchema, strict: openaiStrict, result: responsesResult,
	// strict is always sent, because without it the API tries strict mode,
	// which rejects some valid schemas.
	declare: func(d Declaration, _ lowered, o Options) *object {
		return obj("type", "function", "name", d.Name, "description", d.Description, "parameters", d.Schema, "strict", o.Strict)
	},
	call: func(o *object) (Call, bool) {
		if !o.isKind("function_call") {
			return Call{}, false
		}
		c, ok := named(o, "call_id", "arguments")
		c.ID = cmp.Or(c.ID, o.text("id"))
		return c, ok
	},
}

func responsesResult(c Call, content Content) *object {
	ordered := content.ordered(func(p Part) bool {
		return p.Kind == Image && imageTypes[p.MIMEType] || p.Kind == File && p.MIMEType == "application/pdf"
	})
	out := obj("type", "function_call_output", "call_id", c.ID)
	if !slices.ContainsFunc(ordered, func(p Part) bool { return !isText(p) }) {
		out.set("output", content.ErrorText())
		return out
	}
	if first := &ordered[0]; content.IsError && !isText(*first) {
		ordered = slices.Insert(ordered, 0, Part{Kind: Text, Text: "Error:"})
	} else if content.IsError {
		first.Text = markError(first.Text)
	}
	var parts []any
	for _, p := range ordered {
		if isText(p) {
			parts = append(parts, obj("type", "input_text", "text", p.Text))
			continue
		}
		url := "data:" + p.MIMEType + ";base64," + p.Data
		if p.Kind == Image {
			parts = append(parts, obj("type", "input_image", "image_url", url, "detail", "auto"))
		} else {
			parts = append(parts, obj("type", "input_file", "filename", cmp.Or(p.Name, "file.pdf"), "file_data", url))
		}
	}
	out.set("output", parts)
	return out
}
