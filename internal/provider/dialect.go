package provider

import "strings"

// words is a set of words, for tables that are read rather than computed.
type words map[string]bool

func wordSet(list string) words {
	set := words{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// dialect says what of JSON Schema a provider takes. The zero dialect takes
// next to nothing; [lowering] says the rest in other ways.
type dialect struct {
	// keywords that may be written as they are. What is not here and matters
	// is rewritten, or told in the description.
	keywords words

	// formats of strings that are taken; nil means all.
	formats words

	// oneType: a schema has one type, and null is nullable: true.
	oneType bool
	// upper: types in capitals.
	upper bool
	// lonelyAnyOf: beside anyOf nothing else may stand.
	lonelyAnyOf bool
	// stringEnums: only strings can be enumerated, and none of them empty.
	stringEnums bool
	// textMaps: objects without declared properties are refused; they travel
	// as JSON in a string, and are read out of it when the call comes back.
	textMaps bool
	// strict: every property is required and no other allowed; what was
	// optional may be null.
	strict bool
	// dropNull: null is not offered where leaving out says the same.
	dropNull bool
	// rootConditions: not, if and the like may stand at the root.
	rootConditions bool
	// tellRequired: required of nested objects does not reach the model.
	tellRequired bool
	// ordering: the order of properties is said in propertyOrdering.
	ordering bool

	// key makes a property's key legal; nil where every key is.
	key func(string) string

	// maxBound moves larger bounds on lengths and counts into the
	// description; 0 means no limit.
	maxBound float64
	// depth of nesting that is written out.
	depth int
}

// Property keys as the providers admit them. Both functions return a legal
// key unchanged and are pure, so that a call leads back by trying the keys of
// the tool's own schema.

// dottedKey admits [A-Za-z0-9_.-]{1,64}.
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

// plainKey admits [A-Za-z_][A-Za-z0-9_]{0,63}.
func plainKey(key string) string {
	if len(key) <= maxKey && identifier(key, false) == key {
		return key
	}
	return withHash(identifier(key, false), key, maxKey, 4)
}

const maxKey = 64

// keyRules are all the rules in use.
var keyRules = []func(string) string{dottedKey, plainKey}
