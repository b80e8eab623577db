package provider

import "strings"

// words is a set of words.
type words map[string]bool

func wordSet(list string) words {
	set := words{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// dialect describes the JSON Schema subset of a provider. The zero dialect
// supports almost nothing; [lowering] expresses the rest in other ways.
type dialect struct {
	// keywords that are supported. Other keywords are rewritten or explained in
	// the description.
	keywords words

	// formats of strings that are supported; nil means all.
	formats words

	// oneType: a schema has exactly one type, and null is expressed as
	// nullable: true.
	oneType bool
	// upper: type names are in upper case.
	upper bool
	// anyOfAlone: a schema with anyOf must not have other keywords.
	anyOfAlone bool
	// stringEnums: only non-empty strings can be enumerated.
	stringEnums bool
	// textMaps: objects without declared properties are refused; they are sent
	// as JSON in a string, which is parsed when the call comes back.
	textMaps bool
	// strict: every property is required and no other is allowed; optional
	// properties may be null.
	strict bool
	// dropNull: null is omitted where leaving a property out has the same
	// meaning.
	dropNull bool
	// rootConditions: not, if and similar keywords are allowed at the root.
	rootConditions bool
	// describeRequired: required in nested objects does not reach the model, so the
	// description repeats it.
	describeRequired bool
	// ordering: propertyOrdering gives the order of properties.
	ordering bool

	// key converts a property key into a legal one; nil if every key is legal.
	key func(string) string

	// maxBound is the largest bound on lengths and counts; larger ones are
	// moved into the description. 0 means no limit.
	maxBound float64
	// depth is the maximum nesting.
	depth int
}

// Rules for property keys of the providers. Both functions return a legal key
// unchanged and are pure, so that the original key of a call can be found by
// applying them to the keys of the tool's own schema.

// dottedKey returns a key that matches [A-Za-z0-9_.-]{1,64}.
func dottedKey(key string) string {
	legal := len(key) > 0 && len(key) <= maxKey
	for i := 0; legal && i < len(key); i++ {
		c := rune(key[i])
		legal = letter(c) || '0' <= c && c <= '9' || strings.ContainsRune("_.-", c)
	}
	if legal {
		return key
	}
	return withHash(identifier(key, true), key, maxKey, 4)
}

// plainKey returns a key that matches [A-Za-z_][A-Za-z0-9_]{0,63}.
func plainKey(key string) string {
	if len(key) <= maxKey && identifier(key, false) == key {
		return key
	}
	return withHash(identifier(key, false), key, maxKey, 4)
}

const maxKey = 64

// keyRules are all the rules in use.
var keyRules = []func(string) string{dottedKey, plainKey}
