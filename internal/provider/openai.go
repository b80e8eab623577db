package provider

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
	keywords:   wordSet("format pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems"),
	formats:    wordSet("date-time time date duration email hostname ipv4 ipv6 uuid"),
	strict:     true,
	textMaps:   true,
	anyOfAlone: true,
	depth:      9,
}

// openai is OpenAI's chat completions, which others speak too.
var openai = format{
	name: OpenAI, limit: 128, before: `{"tools":[`, after: `]`, schema: openaiSchema, strict: openaiStrict,
	declare: openaiDeclaration, call: openaiCall,
	result: func(c Call, content Content) *object {
		return obj("role", "tool", "tool_call_id", c.ID, "content", content.ErrorText())
	},
}

// xai is xAI's API: OpenAI's chat completions with a limit of its own.
var xai = func() format {
	f := openai
	f.name, f.limit = XAI, 200
	return f
}()

func openaiDeclaration(d Declaration, _ lowered, o Options) *object {
	function := obj("name", d.Name, "description", d.Description, "parameters", d.Schema)
	if o.Strict {
		function.set("strict", true)
	}
	return obj("type", "function", "function", function)
}

func openaiCall(o *object) (Call, bool) {
	if !o.isKind("function") {
		return Call{}, false
	}
	c, ok := named(within(o, "function"), "", "arguments")
	c.ID = o.text("id")
	return c, ok
}
