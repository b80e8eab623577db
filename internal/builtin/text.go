package builtin

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const textDefinition = `{"name":"text","title":"Text","description":"Transform or measure a text: count characters, words and lines; upper, lower or title case; trim, reverse, sort or deduplicate lines; encode and decode base64, hex and URLs; hash with md5, sha1, sha256 or sha512; format JSON.","inputSchema":{"type":"object","properties":{"operation":{"type":"string","enum":["count","upper","lower","title","trim","reverse","sort_lines","unique_lines","base64_encode","base64_decode","hex_encode","hex_decode","url_encode","url_decode","md5","sha1","sha256","sha512","format_json","minify_json"],"description":"what to do with the text"},"text":{"type":"string","description":"the text"}},"required":["operation","text"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"result":{"type":"string"},"characters":{"type":"integer"},"words":{"type":"integer"},"lines":{"type":"integer"},"bytes":{"type":"integer"}}},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`

// counts is the result of the count operation.
type counts struct {
	Characters int `json:"characters"`
	Words      int `json:"words"`
	Lines      int `json:"lines"`
	Bytes      int `json:"bytes"`
}

// transformed is the result of every other operation.
type transformed struct {
	Result string `json:"result"`
}

func transform(arguments json.RawMessage) (answer, error) {
	var a struct {
		Operation string `json:"operation"`
		Text      string `json:"text"`
	}
	if err := json.Unmarshal(arguments, &a); err != nil {
		return answer{}, fmt.Errorf("arguments: %w", err)
	}
	if a.Operation == "count" {
		c := counts{utf8.RuneCountInString(a.Text), len(strings.Fields(a.Text)), len(lines(a.Text)), len(a.Text)}
		return answer{fmt.Sprintf("%d characters, %d words, %d lines, %d bytes", c.Characters, c.Words, c.Lines, c.Bytes), c}, nil
	}
	operate, ok := operations[a.Operation]
	if !ok {
		return answer{}, fmt.Errorf("unknown operation %q", a.Operation)
	}
	out, err := operate(a.Text)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", a.Operation, err)
	}
	return answer{out, transformed{out}}, nil
}

var operations = map[string]func(string) (string, error){
	"upper":         total(strings.ToUpper),
	"lower":         total(strings.ToLower),
	"title":         total(titleCase),
	"trim":          total(strings.TrimSpace),
	"reverse":       total(reverse),
	"sort_lines":    total(func(s string) string { return joinLines(slices.Sorted(slices.Values(lines(s)))) }),
	"unique_lines":  total(uniqueLines),
	"base64_encode": total(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
	"base64_decode": decodeBase64,
	"hex_encode":    total(func(s string) string { return hex.EncodeToString([]byte(s)) }),
	"hex_decode":    func(s string) (string, error) { return asText(hex.DecodeString(strings.TrimSpace(s))) },
	"url_encode":    total(url.QueryEscape),
	"url_decode":    url.QueryUnescape,
	"md5":           total(func(s string) string { h := md5.Sum([]byte(s)); return hex.EncodeToString(h[:]) }),
	"sha1":          total(func(s string) string { h := sha1.Sum([]byte(s)); return hex.EncodeToString(h[:]) }),
	"sha256":        total(func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }),
	"sha512":        total(func(s string) string { h := sha512.Sum512([]byte(s)); return hex.EncodeToString(h[:]) }),
	"format_json":   func(s string) (string, error) { return reformat(s, "  ") },
	"minify_json":   func(s string) (string, error) { return reformat(s, "") },
}

// total adapts a function that cannot fail to an operation.
func total(f func(string) string) func(string) (string, error) {
	return func(s string) (string, error) { return f(s), nil }
}

func titleCase(s string) string {
	start := true
	return strings.Map(func(r rune) rune {
		upper := start
		start = !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
		if upper {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func reverse(s string) string {
	runes := []rune(s)
	slices.Reverse(runes)
	return string(runes)
}

// lines returns the lines of a text; a trailing line break does not add an
// empty one.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

func joinLines(l []string) string { return strings.Join(l, "\n") }

func uniqueLines(s string) string {
	seen := map[string]bool{}
	return joinLines(slices.DeleteFunc(lines(s), func(l string) bool {
		known := seen[l]
		seen[l] = true
		return known
	}))
}

func decodeBase64(s string) (string, error) {
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/", "\n", "", " ", "").Replace(strings.TrimSpace(s)), "=")
	return asText(base64.RawStdEncoding.DecodeString(s))
}

func asText(b []byte, err error) (string, error) {
	if err == nil && !utf8.Valid(b) {
		return "", fmt.Errorf("the result is not text; in hex it is %s", hex.EncodeToString(b[:min(len(b), 64)]))
	}
	return string(b), err
}

func reformat(s, indent string) (string, error) {
	var b strings.Builder
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "", fmt.Errorf("not JSON: %w", err)
	}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
