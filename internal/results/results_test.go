package results

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/tool"
)

func TestSelect(t *testing.T) {
	slow := selectTimeout
	t.Cleanup(func() { selectTimeout = slow })
	value := json.RawMessage(`{"items":[{"id":12345678901234567890,"name":"a"},{"id":2,"name":"b"}],"total":2}`)
	for expression, want := range map[string]string{
		`.total`:                         `2`,
		`.items[].name`:                  `["a","b"]`,
		`.items | map({name})`:           `[{"name":"a"},{"name":"b"}]`,
		`.items[0].id`:                   `12345678901234567890`,
		`.items[] | select(.id == 99)`:   `[]`,
		`.items | length as $n | $n + 1`: `3`,
		`reduce .items[].id as $i (0; . + $i) | . > 2`: `true`,
		`[.items[] | "\(.name)!"] | join(",")`:         `"a!,b!"`,
		`.items | group_by(.name) | map(length)`:       `[1,1]`,
		`to_entries | map(.key)`:                       `["items","total"]`,
		`.nope?.x // "none"`:                           `"none"`,
		`.items[1:] | .[0].name | test("^b")`:          `true`,
	} {
		if got, err := Select(t.Context(), expression, value); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", expression, got, err, want)
		}
	}
	selectTimeout = 50 * time.Millisecond
	for _, expression := range []string{`.items[`, `.items.name`, `nope`, `[range(1e12)]`, `def f: f | f; f`, `reduce range(1000) as $i ("x"; . + .)`, `"x" * 1e9`, `[range(1e12) | "xxxxxxxxxx" + "y"]`, `[.items] | .[0] * 1e300 * 2`, `[.items[] | .name] | join("x" * 9)`, `$ENV`, `env`, `getpath(["a"]) = 1`, `.items | transpose`,
		`(reduce range(100) as $i (1; [., .])) as $a | (reduce range(100) as $i (1; [., .])) == $a`, `.[1e9] = 1`, `[limit(1e12; repeat("x"))]`, `[range(1e12)] | tojson`, `[.items, .items] | [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]| [., .]`, `"\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)" | "\(.)\(.)\(.)"`, strings.Repeat(".", 5000)} {
		_, err := Select(t.Context(), expression, value)
		if tool.KindOf(err) != tool.InvalidArguments || !strings.Contains(err.Error(), "The result looks like {items: [{id: number, name: string}, … 2 in all], total: number}") {
			t.Errorf("%.20s: %v", expression, err)
		}
	}
}

func TestValueOfAResult(t *testing.T) {
	for raw, want := range map[string]string{
		`{"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"b":2}}`: `{"b":2}`,
		`{"content":[{"type":"text","text":"{\"a\": 1}"}]}`:                             `{"a": 1}`,
		`{"content":[{"type":"text","text":"plain"},{"type":"text","text":"two"}]}`:     `"plain\ntwo"`,
		`{"content":[{"type":"image","data":"x"}]}`:                                     `[{"type":"image","data":"x"}]`,
		`{"content":[]}`: `[]`,
		`{}`:             `null`,
		`{"content":[{"type":"text","text":"12 items"}]}`: `"12 items"`,
	} {
		if got := Value(json.RawMessage(raw)); string(got) != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestLargeResultsAreKept(t *testing.T) {
	c := NewCache()
	whole := strings.Repeat("ä", 5000)
	raw := json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%q},{"type":"image","data":"x"}],"_meta":{"a":1}}`, whole))
	if got := c.Fit(&tool.Local, raw, 20_000); string(got) != string(raw) {
		t.Errorf("a result that fits was changed: %s", got)
	}
	got := c.Fit(&tool.Local, raw, 1001)
	var result struct {
		Content []struct{ Type, Text string }
		Meta    json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(got, &result); err != nil || len(result.Content) != 2 || result.Content[1].Type != "image" || string(result.Meta) != `{"a":1}` {
		t.Fatalf("%v: %s", err, got)
	}
	text := result.Content[0].Text
	if !strings.HasPrefix(text, strings.Repeat("ä", 500)+"\n[junctor: the first 1000 of 10000 bytes.") {
		t.Fatalf("%q", text)
	}
	_, id, _ := strings.Cut(text, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	read, err := c.Read("local", id)
	if err != nil || read != whole {
		t.Errorf("%d bytes, %v", len(read), err)
	}
	if _, err := c.Read("key:other", id); tool.KindOf(err) != tool.InvalidArguments {
		t.Errorf("another caller: %v", err)
	}
	joined, at := "", 0
	for range 100 {
		page, next := Page(read, at, 999)
		joined += page
		if at = next; next == 0 {
			break
		}
	}
	if joined != whole {
		t.Error("the pages differ from the text")
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	c := NewCache()
	if c.Keep("a", strings.Repeat("x", maxCallerBytes+1)) != "" {
		t.Error("more was kept than a caller may have")
	}
	first := c.Keep("a", strings.Repeat("x", maxCallerBytes/2))
	other := c.Keep("b", "y")
	c.Keep("a", strings.Repeat("x", maxCallerBytes/2))
	last := c.Keep("a", "z")
	if _, err := c.Read("a", first); err == nil {
		t.Error("the oldest was not dropped")
	}
	for id, caller := range map[string]string{other: "b", last: "a"} {
		if _, err := c.Read(caller, id); err != nil {
			t.Error(err)
		}
	}
	if c.bytes != maxCallerBytes/2+2 || c.order.Len() != 3 {
		t.Errorf("%d bytes, %d texts", c.bytes, c.order.Len())
	}
	synctest.Test(t, func(t *testing.T) {
		c := NewCache()
		id := c.Keep("a", "x")
		time.Sleep(time.Hour + time.Second)
		if _, err := c.Read("a", id); err == nil {
			t.Error("it is kept longer than an hour")
		}
		if c.Keep("b", "y"); c.order.Len() != 1 {
			t.Error("an expired text takes room")
		}
	})
}

func FuzzSelect(f *testing.F) {
	f.Add(`.a[]`, `{"a":[1]}`)
	f.Fuzz(func(t *testing.T, expression, value string) {
		if out, err := Select(t.Context(), expression, json.RawMessage(value)); err == nil && !json.Valid(out) {
			t.Errorf("%q of %q: %q", expression, value, out)
		}
	})
}

// TestTextAndStructuredContentAreBothKept checks that a large text is not dropped
// because there is structured content too, and the other way round.
func TestTextAndStructuredContentAreBothKept(t *testing.T) {
	long := strings.Repeat("a", 3000)
	for name, tt := range map[string]struct{ raw, want string }{
		"long text":       {fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":{"n":1}}`, long), `^\{"content":\[\{"type":"text","text":"a{1000}\\n\[junctor: the first 1000 of 3000 [^}]*\}[^}]*\}\],"structuredContent":\{"n":1\}\}$`},
		"long structured": {fmt.Sprintf(`{"content":[{"type":"text","text":"done"}],"structuredContent":{"n":%q},"isError":true}`, long), `^\{"content":\[\{"type":"text","text":"done"\},\{"type":"text","text":"\{\\"n\\":\\"a{994}\\n\[junctor: .*\}\],"isError":true\}$`},
		"the same":        {fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":{"n":%q}}`, fmt.Sprintf(`{ "n": %q }`, long), long), `^\{"content":\[\{"type":"text","text":"\{\\"n\\":\\"a{994}\\n\[junctor: the first 1000 of 3008 [^}]*\}[^}]*\}\]\}$`},
		"null":            {fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":null}`, long), `^\{"content":\[\{"type":"text","text":"a{1000}\\n\[junctor: the first 1000 of 3000 [^}]*\}[^}]*\}\]\}$`},
	} {
		t.Run(name, func(t *testing.T) {
			got := NewCache().Fit(&tool.Local, json.RawMessage(tt.raw), 1000)
			if !json.Valid(got) || !regexp.MustCompile(tt.want).Match(got) {
				t.Errorf("got %s", got)
			}
		})
	}
}
