package llm

import (
	"fmt"
	"strings"
	"testing"
)

// scanAll passes text to the scanner in chunks that end at cuts and describes
// the result, with adjacent text joined.
func scanAll(text string, cuts []int) string {
	var f fenceScanner
	var pieces []piece
	at := 0
	for _, c := range append(cuts, len(text)) {
		if c < at || c > len(text) {
			continue
		}
		pieces = append(pieces, f.write(text[at:c])...)
		at = c
	}
	pieces = append(pieces, f.end()...)
	var out, open strings.Builder
	for _, p := range pieces {
		if !p.tool {
			open.WriteString(p.text)
			continue
		}
		fmt.Fprintf(&out, "text %q; block %q closed=%v; ", open.String(), p.block, p.closed)
		open.Reset()
	}
	fmt.Fprintf(&out, "text %q", open.String())
	return out.String()
}

func TestFenceSplitsTextAndBlocks(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"only text":             {"hello `code` there", `text "hello ` + "`code`" + ` there"`},
		"one call":              {"```tool\n{\"tool\":\"a\"}\n```", `text ""; block "\n{\"tool\":\"a\"}\n" closed=true; text ""`},
		"text around":           {"hi\n```tool\n{}\n```\nbye", `text "hi\n"; block "\n{}\n" closed=true; text "\nbye"`},
		"on one line":           {"```tool {\"a\":1} ```", `text ""; block "{\"a\":1} " closed=true; text ""`},
		"middle of a line":      {"so: ```tool\n{}\n``` ok", `text "so: "; block "\n{}\n" closed=true; text " ok"`},
		"two blocks":            {"```tool\n{}\n```\n```tool\n[]\n```", `text ""; block "\n{}\n" closed=true; text "\n"; block "\n[]\n" closed=true; text ""`},
		"other code":            {"```go\nx := 1\n```", `text "` + "```go\\nx := 1\\n```" + `"`},
		"toolbox is not tool":   {"```toolbox\n{}\n```", `text "` + "```toolbox\\n{}\\n```" + `"`},
		"prose about it":        {"use ```tool blocks", `text "use ` + "```tool blocks" + `"`},
		"four backticks quote":  {"````tool\n{}\n````", `text "` + "````tool\\n{}\\n````" + `"`},
		"fence inside a string": {"```tool\n{\"c\":\"x ``` y\"}\n```", `text ""; block "\n{\"c\":\"x ` + "```" + ` y\"}\n" closed=true; text ""`},
		"escaped quote":         {"```tool\n{\"c\":\"\\\"```\"}\n```", `text ""; block "\n{\"c\":\"\\\"` + "```" + `\"}\n" closed=true; text ""`},
		"string without end":    {"```tool\n{\"c\":\"x\n```\nrest", `text ""; block "\n{\"c\":\"x\n" closed=true; text "\nrest"`},
		"unfinished":            {"hi ```tool\n{\"a\":", `text "hi "; block "\n{\"a\":" closed=false; text ""`},
		"opened only":           {"hi ```tool", `text "hi "; block "" closed=false; text ""`},
		"nearly opened":         {"hi ```too", `text "hi ` + "```too" + `"`},
		"carriage returns":      {"```tool\r\n{}\r\n```\r\n", `text ""; block "\n{}\r\n" closed=true; text "\r\n"`},
		"empty":                 {"", `text ""`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := scanAll(tt.in, nil); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			var every []int
			for i := range tt.in {
				every = append(every, i)
			}
			if got := scanAll(tt.in, every); got != tt.want {
				t.Errorf("byte by byte: %s", got)
			}
		})
	}
}

func FuzzFence(f *testing.F) {
	f.Add("hi\n```tool\n{\"tool\":\"a\",\"arguments\":{\"x\":\"```\"}}\n```\nbye", []byte{3, 9, 20})
	f.Add("````tool\n```tool {\n\"```\n```", []byte{1, 1, 1, 1})
	f.Add("`` ```too l```tool", []byte{5})
	f.Fuzz(func(t *testing.T, text string, steps []byte) {
		var cuts []int
		at := 0
		for _, s := range steps {
			at += int(s)
			cuts = append(cuts, at)
		}
		whole := scanAll(text, nil)
		if got := scanAll(text, cuts); got != whole {
			t.Fatalf("chunks %v: %s\nwhole: %s", cuts, got, whole)
		}
		// Text never contains the beginning of a block.
		var s fenceScanner
		for _, p := range append(s.write(text), s.end()...) {
			if p.tool {
				parseBlock(p.block) // must not panic
			} else if strings.Contains(p.text, "```tool\n") && !strings.Contains(p.text, "````tool\n") {
				t.Fatalf("leaked: %q", p.text)
			}
		}
	})
}

func TestParseBlock(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want int // number of calls; 0 means an error
	}{
		"one":            {`{"tool":"a","arguments":{}}`, 1},
		"name for tool":  {`{"name":"a"}`, 1},
		"in a row":       {"{\"tool\":\"a\"}\n{\"tool\":\"b\"}", 2},
		"array":          {`[{"tool":"a"},{"tool":"b"}]`, 2},
		"nothing":        {"  \n", 0},
		"no tool":        {`{"arguments":{}}`, 0},
		"not JSON":       {`{tool: a}`, 0},
		"a word":         {`search`, 0},
		"array of words": {`["a"]`, 0},
		"a number":       {`7`, 0},
		"cut off":        {`{"tool":"a"`, 0},
	} {
		calls, err := parseBlock(tt.in)
		if len(calls) != tt.want && err == nil || (err != nil) != (tt.want == 0) {
			t.Errorf("%s: %d calls, %v", name, len(calls), err)
		}
	}
}
