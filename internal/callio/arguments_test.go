package callio

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestArgumentsKeepTextAsTyped: a value stays text if the parameter may be a
// string, however the schema expresses that.
func TestArgumentsKeepTextAsTyped(t *testing.T) {
	for name, tt := range map[string]struct{ property, text, other string }{
		"a string":          {`{"type":"string"}`, "7", ""},
		"among other types": {`{"type":["integer","string"]}`, "7", ""},
		"an enumeration":    {`{"enum":["1","2"]}`, "1", ""},
		"a constant":        {`{"const":"1"}`, "1", ""},
		"str or None":       {`{"anyOf":[{"type":"string"},{"type":"null"}]}`, "true", ""},
		"one of":            {`{"oneOf":[{"type":"integer"},{"type":"string"}]}`, "7", ""},
		"all of":            {`{"allOf":[{"description":"a"},{"type":"string"}]}`, "7", ""},
		"a reference":       {`{"$ref":"#/$defs/text"}`, "7", ""},
		"nested":            {`{"anyOf":[{"$ref":"#/$defs/self"},{"allOf":[{"$ref":"#/$defs/text"}]},{"type":"null"}]}`, "7", ""},
		"an integer":        {`{"type":"integer","anyOf":[{"type":"string"}]}`, "", "7"},
		"int or None":       {`{"anyOf":[{"type":"integer"},{"type":"null"}]}`, "", "7"},
		"no such reference": {`{"$ref":"#/$defs/none"}`, "", "7"},
		"another document":  {`{"$ref":"https://example.com/$defs/text"}`, "", "7"},
		"itself":            {`{"$ref":"#/$defs/self"}`, "", "7"},
		"each other":        {`{"$ref":"#/$defs/many"}`, "", "7"},
		"anything":          {`true`, "", "7"},
	} {
		t.Run(name, func(t *testing.T) {
			many := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/many"},{"anyOf":[{"$ref":"#/$defs/self"},{"$ref":"#/$defs/many"}]},`, 50), ",")
			schema := `{"type":"object","properties":{"p":` + tt.property + `},"$defs":{
				"text":{"type":"string"},"self":{"anyOf":[{"$ref":"#/$defs/self"},{"type":"null"}]},"many":{"anyOf":[` + many + `]}}}`
			typed, want := tt.other, `{"p":`+tt.other+`}`
			if tt.text != "" {
				typed, want = tt.text, `{"p":"`+tt.text+`"}`
			}
			got, err := Arguments(json.RawMessage(schema), "", []string{"p=" + typed}, nil)
			if err != nil || string(got) != want {
				t.Errorf("p=%s is sent as %s, %v; want %s", typed, got, err, want)
			}
		})
	}
}
