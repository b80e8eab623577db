package rawjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want error
	}{
		"fine":        {` {"a":[1]} `, nil},
		"not UTF-8":   {"{\"a\":\"\xff\"}", ErrUTF8},
		"no JSON":     {`{"a"}`, ErrSyntax},
		"two values":  {`{} {}`, ErrSyntax},
		"empty":       {``, ErrSyntax},
		"too deep":    {`[[[[1]]]]`, ErrDepth},
		"just enough": {`[[[1]]]`, nil},
	} {
		if err := Check([]byte(tt.in), 3); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// FuzzScan compares the scanner to encoding/json: the same inputs are valid.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e+3,true,false,null,"x\u00e4\n\""],"b":{}}`, `[]`, `0`, `01`, `-`, `1.`, `1e`, `"\ud800"`, `"\x"`, `"` + "\x01" + `"`, `"` + "\xff" + `"`,
		`"` + strings.Repeat("0123456789", 7) + "\x1f" + `"`, `"` + strings.Repeat("0123456789", 7) + `\\`, `"` + strings.Repeat("ä !#[]", 9) + `"`,
		`"` + strings.Repeat("0123456789ä", 300) + "\x1f" + strings.Repeat("0123456789", 300) + `"`, `"` + strings.Repeat("0123456789", 400) + `\n` + strings.Repeat("z", 3000) + `"`,
		`nul`, `{"a"}`, `{"a":1,}`, `[1,]`, ` { } `, `"12345678\"12345678"`, "\"1234567\x1f\"", `{"a":1}}`, "\u2028",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const depth = 200
		i := SkipSpace(data, 0)
		end, err := SkipValue(data, i, depth)
		got := err == nil && SkipSpace(data, end) == len(data)
		if errors.Is(err, ErrDepth) {
			return
		}
		if want := json.Valid(data); got != want {
			t.Fatalf("scanner says %v (%v), encoding/json says %v: %q", got, err, want, data)
		}
		if got := Valid(data); got != json.Valid(data) {
			t.Fatalf("Valid says %v: %q", got, data)
		}
	})
}

// FuzzInvalidUTF8 compares InvalidUTF8 to unicode/utf8.
func FuzzInvalidUTF8(f *testing.F) {
	for _, seed := range []string{"", "plain", strings.Repeat("x", 200) + "ä", strings.Repeat("x", 63) + "ä" + strings.Repeat("x", 64) + "\xff", strings.Repeat("ä", 100) + "\xc3"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		at := InvalidUTF8(b)
		if (at < 0) != utf8.Valid(b) || at >= 0 && (!utf8.Valid(b[:at]) || utf8.FullRune(b[at:]) && utf8.Valid(b[at:at+1])) {
			t.Fatalf("%q: the first byte that is not UTF-8 is at %d", b, at)
		}
	})
}

// FuzzQuote checks that encoding/json decodes what AppendQuoted writes.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "plain", `a"b\c`, "\x00\x1f\n\r\t", "ä\u2028<&>", "\xff", strings.Repeat("0123456789", 10) + `"`, strings.Repeat("x", 31) + "\x7f\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		quoted := AppendQuoted([]byte("-"), in)[1:]
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil || !utf8.ValidString(got) {
			t.Fatalf("%q became %s, read as %q (%v)", in, quoted, got, err)
		}
		if utf8.ValidString(in) && got != in {
			t.Fatalf("%q became %s, read as %q", in, quoted, got)
		}
		if read, ok := Unquote(quoted); !ok || read != got {
			t.Fatalf("%s is read as %q, not as %q", quoted, read, got)
		}
	})
}

// TestStringsOfEveryLength covers each way in which the scanner reads a string:
// by words, by windows, and byte by byte.
func TestStringsOfEveryLength(t *testing.T) {
	for n := range 3 * window {
		plain := strings.Repeat("x", n)
		for _, c := range []struct {
			text  string
			valid bool
		}{
			{`["` + plain + `",1]`, true},
			{`["` + plain + `\"",1]`, true},
			{`["` + plain + "\n" + `",1]`, false},
			{`["` + plain + `"x,1]`, false},
			{`["` + plain + `\x",1]`, false},
			{`["` + plain, false},
		} {
			if got := Valid([]byte(c.text)); got != c.valid {
				t.Fatalf("with a string of %d characters, Valid(…%q) = %v", n, c.text[max(0, len(c.text)-8):], got)
			}
		}
	}
}
