package provider

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// bedrock is Amazon's Converse API. Most of its models are Anthropic's, so
// Anthropic's rules for schemas apply.
var bedrock = format{
	name: Bedrock, before: `{"toolConfig":{"tools":[`, after: `]}`, schema: anthropicSchema, result: bedrockResult,
	declare: func(d Declaration, _ lowered, _ Options) *object {
		return obj("toolSpec", obj("name", d.Name, "description", d.Description, "inputSchema", obj("json", d.Schema)))
	},
	call: func(o *object) (Call, bool) {
		inner := within(o, "toolUse")
		if !inner.isKind("server_tool_use") {
			return Call{}, false
		}
		return named(inner, "toolUseId", "input")
	},
}

// documentFormats are the supported document formats of a result, by MIME type.
var documentFormats = map[string]string{
	"application/pdf": "pdf", "text/csv": "csv", "application/msword": "doc", "text/html": "html",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
	"application/vnd.ms-excel": "xls", "text/markdown": "md", "text/plain": "txt",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}

// bedrockResult sends only text if the tool failed, as Anthropic's API requires.
func bedrockResult(c Call, content Content) *object {
	takes := func(p Part) bool {
		return !content.IsError && (p.Kind == Image && imageTypes[p.MIMEType] && len(p.Data) <= maxImage || p.Kind == File && documentFormats[p.MIMEType] != "")
	}
	parts := content.ordered(takes)
	text, _ := content.split(takes, false)
	blocks := []any{}
	if v, ok := content.value(text).(json.RawMessage); ok { // equivalent to the text
		if v[0] == '{' && content.Structured != nil {
			blocks = append(blocks, obj("json", v))
		} else {
			blocks = append(blocks, obj("text", cmp.Or(text, string(v))))
		}
		parts = slices.DeleteFunc(parts, isText)
	}
	for _, p := range parts {
		if isText(p) {
			blocks = append(blocks, obj("text", p.Text))
			continue
		}
		source := obj("bytes", p.Data)
		if p.Kind == Image {
			blocks = append(blocks, obj("image", obj("format", strings.TrimPrefix(p.MIMEType, "image/"), "source", source)))
		} else {
			blocks = append(blocks, obj("document", obj("format", documentFormats[p.MIMEType], "name", documentName(p.Name), "source", source)))
		}
	}
	if len(blocks) == 0 {
		blocks = append(blocks, obj("text", cmp.Or(content.ErrorText(), "(no content)"))) // the API requires a block
	}
	status := "success"
	if content.IsError {
		status = "error"
	}
	return obj("toolResult", obj("toolUseId", c.ID, "content", blocks, "status", status))
}

// documentName replaces characters that the API does not allow.
func documentName(name string) string {
	name = strings.Map(func(r rune) rune {
		if letter(r) || '0' <= r && r <= '9' || strings.ContainsRune(" -()[]", r) {
			return r
		}
		return '-'
	}, name)
	return cmp.Or(strings.Join(strings.Fields(name[:min(len(name), 60)]), " "), "document")
}
