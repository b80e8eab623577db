package form

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"junctor/internal/terminal"
)

func TestFillKinds(t *testing.T) {
	const requested = `{"type":"object","required":["n"],"properties":{
		"n":{"type":"integer","title":"Number","description":"of them"},
		"ok":{"type":"boolean"},
		"pet":{"type":"string","oneOf":[{"const":"a","title":"Ape"},{"const":"b","title":"Bee"}]},
		"kinds":{"type":"array","items":{"enum":["x","y","z"]}},
		"word":{"type":"string","default":"so"},
		"old":{"type":"string","enum":["1","2"],"enumNames":["One","Two"]},
		"left":{"type":"string"},
		"odd":7,
		"mail":{"type":"string","format":"email"},
		"day":{"type":"string","format":"date"},
		"fish":{"type":"array","items":{"anyOf":[{"const":"f1","title":"Tuna"},{"const":"f2","title":"Cod"}]},"default":["f1","f2"]}}}`
	var shown bytes.Buffer
	c := &terminal.Terminal{Err: &shown}
	got, _, err := Fill(t.Context(), c, json.RawMessage(requested), typist(&shown, "many\n0x10\n7\ny\nbear\nbee\nx, z\n\nTwo\n\nada\nada@example.com\n1.2.2026\n2026-02-01\n\n"))
	if err != nil || string(got) != `{"day":"2026-02-01","fish":["f1","f2"],"kinds":["x","z"],"mail":"ada@example.com","n":7,"ok":true,"old":"2","pet":"b","word":"so"}` {
		t.Errorf("%s %v", got, err)
	}
	for _, want := range []string{"Number (of them) *: ", "ok [y/n]: ", "pet [Ape, Bee]: ", "separated by commas", `word, default "so": `, `"many" is not a number`, `"0x10" is not a number`, `"bear" is not one of the choices`, "not valid email", "not valid date", "separated by commas, default Tuna, Cod: "} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, shown.String())
		}
	}
}

// typist returns an ask function that returns the text line by line.
func typist(shown *bytes.Buffer, typed string) func(prompt string) (string, error) {
	return func(prompt string) (string, error) {
		shown.WriteString(prompt)
		line, rest, ok := strings.Cut(typed, "\n")
		if !ok {
			return "", io.EOF
		}
		typed = rest
		return line, nil
	}
}

func TestFill(t *testing.T) {
	const requested = `{"type":"object","required":["name"],"properties":{
		"name":{"type":"string","title":"Your name","minLength":2},
		"age":{"type":"integer","maximum":150},
		"member":{"type":"boolean","default":true},
		"colour":{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#0f0","title":"Green"}]},
		"days":{"type":"array","items":{"type":"string","enum":["mo","tu","we"]}}}}`
	for name, tt := range map[string]struct {
		typed           string
		content, action string
		shown           string
	}{
		"all":           {"Ada\n36\nn\nred\nmo, we\n", `{"age":36,"colour":"#f00","days":["mo","we"],"member":false,"name":"Ada"}`, "accept", "Your name *: "},
		"defaults":      {"Ada\n\n\n\n\n", `{"member":true,"name":"Ada"}`, "accept", "default true"},
		"required":      {"\nAda\n\n\n\n\n", `{"member":true,"name":"Ada"}`, "accept", "this field is required"},
		"too short":     {"A\nAda\n\n\n\n\n", `{"member":true,"name":"Ada"}`, "accept", "minLength"},
		"too large":     {"Ada\n200\n20\n\n\n\n", `{"age":20,"member":true,"name":"Ada"}`, "accept", "150"},
		"no number":     {"Ada\nold\n20\n\n\n\n", `{"age":20,"member":true,"name":"Ada"}`, "accept", `"old" is not a number`},
		"no choice":     {"Ada\n\nmaybe\ny\nblue\nGreen\n\n", `{"colour":"#0f0","member":true,"name":"Ada"}`, "accept", `"blue" is not one of the choices`},
		"declined":      {"Ada\n/no\n", "", "decline", ""},
		"cancelled":     {"Ada\n/cancel\n", "", "cancel", ""},
		"end of input":  {"Ada\n", "", "cancel", ""},
		"nothing typed": {"", "", "cancel", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var shown bytes.Buffer
			c := &terminal.Terminal{Err: &shown, Width: func(io.Writer) (int, bool) { return 0, false }}
			content, action, err := Fill(t.Context(), c, json.RawMessage(requested), typist(&shown, tt.typed))
			if err != nil || string(content) != tt.content || action != tt.action {
				t.Errorf("Fill = %s, %q, %v; want %s, %q", content, action, err, tt.content, tt.action)
			}
			if !strings.Contains(shown.String(), tt.shown) {
				t.Errorf("%q is not shown:\n%s", tt.shown, shown.String())
			}
		})
	}
}
