package provider

import (
	"encoding/json"
	"fmt"
	"strings"

	"junctor/internal/tool"
)

// The providers.
const (
	Gemini          = "gemini"
	OpenAI          = "openai"
	OpenAIResponses = "openai-responses"
	XAI             = "xai"
	Anthropic       = "anthropic"
	Ollama          = "ollama"
	Bedrock         = "bedrock"
)

// format is the implementation of one provider. To add a provider, add a file
// with a format and an entry in [formats].
type format struct {
	name          string
	limit         int    // the maximum number of tools of one request; 0 if unknown
	before, after string // the text around the declarations

	// The schema subsets: the default, and those selected by Options; nil if
	// the provider does not have one.
	schema, strict, openapi *dialect

	// declare returns one declaration.
	declare func(d Declaration, low lowered, o Options) *object
	// call parses a call in the provider's format. It reports false for other
	// formats. It is lenient, unless a looser reading would accept another
	// provider's calls.
	call func(o *object) (Call, bool)
	// result returns a result in the provider's format.
	result func(c Call, content Content) *object
}

// formats lists all providers, in the order of documentation.
var formats = []*format{&gemini, &openai, &responses, &xai, &anthropic, &ollama, &bedrock}

// dialect returns the schema subset for the options, which have been checked.
func (f *format) dialect(o Options) *dialect {
	switch {
	case o.Strict:
		return f.strict
	case o.Schema == OpenAPISchema:
		return f.openapi
	}
	return f.schema
}

// Providers returns the names of all providers.
func Providers() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// find returns the format of a provider by its name or an alias.
func find(name string) (*format, error) {
	known := map[string]string{
		"google": Gemini, "openai-chat": OpenAI, "openai_responses": OpenAIResponses, "responses": OpenAIResponses,
		"grok": XAI, "x-ai": XAI, "claude": Anthropic, "aws": Bedrock, "aws-bedrock": Bedrock,
	}
	lower := strings.ToLower(strings.TrimSpace(name))
	if alias, ok := known[lower]; ok {
		lower = alias
	}
	for _, f := range formats {
		if f.name == lower {
			return f, nil
		}
	}
	return nil, &tool.Error{
		Kind:    tool.InvalidRequest,
		Msg:     fmt.Sprintf("unknown provider %q; use one of %s", tool.Shorten(name, 64), strings.Join(Providers(), ", ")),
		Details: map[string]any{"providers": Providers()},
	}
}

// Lookup returns the canonical name of a provider.
func Lookup(name string) (string, error) {
	f, err := find(name)
	if err != nil {
		return "", err
	}
	return f.name, nil
}

// Limit returns the maximum number of tools of one request to a provider; 0 if
// it or the provider is unknown.
func Limit(name string) int {
	f, err := find(name)
	if err != nil {
		return 0
	}
	return f.limit
}

// Call is a provider-independent call of a model.
type Call struct {
	ID        string // the provider's id of the call; may be empty
	Name      string // the declared name, as written by the model
	Arguments json.RawMessage
}

// ReadCall parses a call in a provider's format. Without a name it detects the
// format. It returns the provider's name.
func ReadCall(name string, raw json.RawMessage) (string, Call, error) {
	v, err := parseJSON(raw)
	if err != nil {
		return "", Call{}, &tool.Error{Kind: tool.ParseFailed, Msg: "the call is not JSON: " + err.Error()}
	}
	o, ok := v.(*object)
	if !ok {
		return "", Call{}, &tool.Error{Kind: tool.InvalidRequest, Msg: "the call is not an object; send the call object as the provider's API returned it"}
	}
	if name == "" {
		f, err := recognise(o)
		if err != nil {
			return "", Call{}, err
		}
		c, _ := f.call(o)
		return f.name, c, nil
	}
	f, err := find(name)
	if err != nil {
		return "", Call{}, err
	}
	c, ok := f.call(o)
	if !ok {
		msg := fmt.Sprintf("the call is not in the form of %s", f.name)
		if other, err := recognise(o); err == nil {
			msg += fmt.Sprintf("; it looks like one of %s: name that provider, or none", other.name)
		} else {
			msg += "; send the call object as its API returned it"
		}
		return "", Call{}, &tool.Error{Kind: tool.InvalidRequest, Msg: msg}
	}
	return f.name, c, nil
}

// recognise returns the format of a call by keys that are unique to it.
func recognise(o *object) (*format, error) {
	fn, _ := o.get("function")
	function, _ := fn.(*object)
	arguments, _ := function.get("arguments")
	_, argumentsAreObject := arguments.(*object)
	kind := o.text("type")
	var name string
	switch {
	case kind == "tool_use":
		name = Anthropic
	case kind == "function_call" || o.has("call_id") && o.has("arguments"):
		name = OpenAIResponses
	case o.has("functionCall", "function_call") || o.has("args") && o.has("name"):
		name = Gemini
	case o.has("toolUse", "toolUseId"):
		name = Bedrock
	case function != nil && argumentsAreObject:
		name = Ollama
	case function != nil:
		name = OpenAI
	default:
		return nil, &tool.Error{Kind: tool.InvalidRequest, Msg: "cannot tell which provider's call this is; name it in provider: one of " + strings.Join(Providers(), ", ")}
	}
	f, err := find(name)
	if err != nil {
		return nil, err
	}
	if _, ok := f.call(o); !ok {
		return nil, &tool.Error{Kind: tool.InvalidRequest, Msg: fmt.Sprintf("the call looks like one of %s but has no name", name)}
	}
	return f, nil
}

// FormatResult returns a tool's result in a provider's format.
func FormatResult(name string, c Call, content Content) (json.RawMessage, error) {
	f, err := find(name)
	if err != nil {
		return nil, err
	}
	return encode(f.result(c, content)), nil
}

// named parses the common form of calls: a name, and arguments under a key.
func named(o *object, idKey, argumentsKey string) (Call, bool) {
	c := Call{ID: o.text(idKey), Name: o.text("name")}
	if v, ok := o.get(argumentsKey); ok && v != nil {
		c.Arguments = encode(v)
	}
	return c, c.Name != ""
}

// within returns the object under the first of keys that has one, otherwise o.
func within(o *object, keys ...string) *object {
	for _, k := range keys {
		if v, ok := o.get(k); ok {
			if inner, ok := v.(*object); ok {
				return inner
			}
		}
	}
	return o
}

// obj returns an object of alternating keys and values.
func obj(pairs ...any) *object {
	o := newObject()
	for i := 0; i+1 < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}
