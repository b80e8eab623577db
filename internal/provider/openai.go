package provider

// openai is OpenAI's chat completions, which others speak too.
type openai struct{}

// everything is JSON Schema without restrictions.
var everything = &dialect{
	keywords: wordSet(`title format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum
		multipleOf minItems maxItems uniqueItems contains prefixItems additionalProperties patternProperties
		propertyNames minProperties maxProperties dependentSchemas default examples deprecated readOnly writeOnly
		oneOf allOf not if contentEncoding contentMediaType`),
	rootConditions: true,
	depth:          32,
}

// openaiSchema is the subset without strict mode: arrays must have items and
// objects properties, tuples are not supported, and the root must be plain.
var openaiSchema = &dialect{
	keywords: wordSet(`title format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum
		multipleOf minItems maxItems uniqueItems additionalProperties patternProperties
		propertyNames minProperties maxProperties dependentSchemas default examples deprecated
		oneOf allOf not if`),
	depth: 32,
}

// openaiStrict is the subset of structured outputs.
var openaiStrict = &dialect{
	keywords:    wordSet("format pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems"),
	formats:     wordSet("date-time time date duration email hostname ipv4 ipv6 uuid"),
	strict:      true,
	textMaps:    true,
	lonelyAnyOf: true,
	depth:       9,
}

func (openai) name() string { return OpenAI }
func (openai) limit() int   { return 128 }

func (openai) dialect(o Options) *dialect {
	if o.Strict {
		return openaiStrict
	}
	return openaiSchema
}

func (openai) envelope() (string, string) { return `{"tools":[`, `]` }

func (openai) declare(d Declaration, _ lowered, o Options) *object {
	function := obj("name", d.Name, "description", d.Description, "parameters", d.Schema)
	if o.Strict {
		function.set("strict", true)
	}
	return obj("type", "function", "function", function)
}

func (openai) call(o *object) (Call, bool) {
	if kind := o.text("type"); kind != "" && kind != "function" {
		return Call{}, false
	}
	c, ok := named(within(o, "function"), "", "arguments")
	c.ID = o.text("id")
	return c, ok
}

func (openai) result(c Call, content Content) *object {
	return obj("role", "tool", "tool_call_id", c.ID, "content", content.ErrorText())
}
