package provider

import (
	"slices"
	"strings"
)

// responses is OpenAI's responses API.
type responses struct{}

func (responses) name() string { return OpenAIResponses }
func (responses) limit() int   { return 128 }

func (responses) dialect(o Options) *dialect {
	if o.Strict {
		return openaiStrict
	}
	return openaiSchema
}

func (responses) envelope() (string, string) { return `{"tools":[`, `]` }

// declare always sets strict, because without it the API tries strict mode,
// which refuses some valid schemas.
func (responses) declare(d Declaration, _ lowered, o Options) *object {
	return obj("type", "function", "name", d.Name, "description", d.Description, "parameters", d.Schema, "strict", o.Strict)
}

func (responses) call(o *object) (Call, bool) {
	if kind := o.text("type"); kind != "" && kind != "function_call" {
		return Call{}, false
	}
	c, ok := named(o, "call_id", "arguments")
	c.ID = first(c.ID, o.text("id"))
	return c, ok
}

func (responses) result(c Call, content Content) *object {
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
	} else if content.IsError && !strings.HasPrefix(strings.ToLower(first.Text), "error") {
		first.Text = "Error: " + first.Text
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
			parts = append(parts, obj("type", "input_file", "filename", first(p.Name, "file.pdf"), "file_data", url))
		}
	}
	out.set("output", parts)
	return out
}
