package provider

// ollama is Ollama's own chat API. Its OpenAI-compatible one is [OpenAI].
type ollama struct{}

// ollamaSchema: the program keeps type, items, description, enum, properties
// and anyOf of a property, and required of the root; the rest of a schema
// never reaches the model, so it is told.
var ollamaSchema = &dialect{
	keywords:         words{},
	dropNull:         true,
	describeRequired: true,
	depth:            12,
}

func (ollama) name() string { return Ollama }
func (ollama) limit() int   { return 0 }

func (ollama) dialect(Options) *dialect { return ollamaSchema }

func (ollama) envelope() (string, string) { return `{"tools":[`, `]` }

func (ollama) declare(d Declaration, _ lowered, _ Options) *object {
	return obj("type", "function", "function", obj("name", d.Name, "description", d.Description, "parameters", d.Schema))
}

func (ollama) call(o *object) (Call, bool) {
	if kind := o.text("type"); kind != "" && kind != "function" {
		return Call{}, false
	}
	c, ok := named(within(o, "function"), "", "arguments")
	c.ID = o.text("id")
	return c, ok
}

func (ollama) result(c Call, content Content) *object {
	text, media := content.split(func(p Part) bool { return p.Kind == Image && imageTypes[p.MIMEType] }, true)
	if text == "" && len(media) == 0 || content.IsError {
		text = content.ErrorText()
	}
	out := obj("role", "tool", "tool_name", c.Name)
	if c.ID != "" {
		out.set("tool_call_id", c.ID)
	}
	out.set("content", text)
	var images []string
	for _, p := range media {
		images = append(images, p.Data)
	}
	if len(images) > 0 {
		out.set("images", images)
	}
	return out
}
