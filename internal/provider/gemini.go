package provider

// Schemas that Options.Schema asks for.
const (
	JSONSchema    = "json"    // parametersJsonSchema, the default
	OpenAPISchema = "openapi" // parameters, for older models and libraries
)

// geminiSchema holds the keywords that the API documents for JSON Schema.
var geminiSchema = &dialect{
	keywords: wordSet("title format minItems maxItems minimum maximum prefixItems additionalProperties oneOf"),
	formats:  wordSet("date-time date time"),
	ordering: true,
	maxBound: 1_000,
	depth:    20,
}

// geminiOpenAPI is the subset of OpenAPI 3.0 that the API's Schema message has.
var geminiOpenAPI = &dialect{
	keywords: wordSet(`title format minItems maxItems minProperties maxProperties minimum maximum minLength
		maxLength pattern default`),
	formats:     wordSet("date-time"),
	oneType:     true,
	upper:       true,
	anyOfAlone:  true,
	stringEnums: true,
	textMaps:    true,
	ordering:    true,
	key:         plainKey,
	maxBound:    1_000,
	depth:       16,
}

// gemini is Google's generateContent.
var gemini = format{
	name: Gemini, limit: 512, before: `{"function_declarations":[`, after: `]`,
	schema: geminiSchema, openapi: geminiOpenAPI, result: geminiResult,
	declare: func(d Declaration, low lowered, o Options) *object {
		out := obj("name", d.Name, "description", d.Description)
		switch {
		case o.Schema != OpenAPISchema:
			out.set("parametersJsonSchema", d.Schema)
		case !low.empty: // the API refuses objects without properties
			out.set("parameters", d.Schema)
		}
		return out
	},
	call: func(o *object) (Call, bool) {
		if o.text("type") != "" || o.has("input") { // not in any form of a Gemini call
			return Call{}, false
		}
		inner := within(o, "functionCall", "function_call")
		c, ok := named(inner, "id", "args")
		return c, ok && (c.Arguments != nil || !inner.has("arguments"))
	},
}

// geminiResult puts text and structured content into response, under the documented
// keys for success and failure, and media next to it.
func geminiResult(c Call, content Content) *object {
	text, media := content.split(func(p Part) bool {
		return p.Kind == Image && p.MIMEType != "image/gif" && imageTypes[p.MIMEType] || p.MIMEType == "application/pdf"
	}, true)
	response := newObject()
	if content.IsError {
		if text == "" {
			text = content.ErrorText()
		}
		response.set("error", text)
	} else {
		v := content.value(text)
		response.set("output", v)
		switch s, isText := v.(string); {
		case !isText || s == "" || content.Structured == nil:
		case content.repeats(): // the usual duplicate for older clients
			response.set("output", content.Structured)
		default:
			response.set("structuredContent", content.Structured)
		}
	}
	fr := newObject()
	if c.ID != "" {
		fr.set("id", c.ID)
	}
	fr.set("name", c.Name)
	fr.set("response", response)
	var parts []any
	for _, p := range media {
		parts = append(parts, obj("inlineData", obj("mimeType", p.MIMEType, "data", p.Data)))
	}
	if len(parts) > 0 {
		fr.set("parts", parts)
	}
	return obj("functionResponse", fr)
}
