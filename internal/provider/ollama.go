package provider

// ollamaSchema is what Ollama keeps of a schema: type, items, description,
// enum, properties and anyOf of a property, and required of the root. It drops
// the rest, which is therefore moved to descriptions.
var ollamaSchema = &dialect{
	keywords:         words{},
	dropNull:         true,
	describeRequired: true,
	depth:            12,
}

// ollama is Ollama's own chat API. Its OpenAI-compatible one is [OpenAI].
var ollama = format{
	name: Ollama, before: `{"tools":[`, after: `]`, schema: ollamaSchema,
	declare: openaiDeclaration, call: openaiCall, result: ollamaResult,
}

func ollamaResult(c Call, content Content) *object {
	text, media := content.split(func(p Part) bool { return p.Kind == Image && imageTypes[p.MIMEType] }, true)
	if text == "" && len(media) == 0 || content.IsError {
		text = content.ErrorText()
	}
	out := obj("role", "tool", "tool_name", c.Name)
	if c.ID != "" {
		out.set("tool_call_id", c.ID)
	}
	out.set("content", text)
	var images []any
	for _, p := range media {
		images = append(images, p.Data)
	}
	if len(images) > 0 {
		out.set("images", images)
	}
	return out
}
