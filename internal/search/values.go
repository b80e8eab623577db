package search

import (
	"regexp"
	"strings"
)

// withoutValues replaces values in a query: a URL by the name of its site, an
// e-mail address by a placeholder word. Values are what a tool works on, not
// what it does.
func withoutValues(text string) string {
	if !strings.Contains(text, "://") && !strings.Contains(text, "@") {
		return text
	}
	fields := strings.Fields(text)
	for i, f := range fields {
		if _, rest, ok := strings.Cut(f, "://"); ok {
			host, _, _ := strings.Cut(rest, "/")
			fields[i] = site(host) + " url"
		} else if at := strings.IndexByte(f, '@'); at > 0 && strings.IndexByte(f[at:], '.') > 1 {
			fields[i] = "email"
		}
	}
	return strings.Join(fields, " ")
}

// site returns the common name of a host: github for api.github.com:443.
func site(host string) string {
	host, _, _ = strings.Cut(strings.TrimRight(host, `.,;:!?)"'`), ":")
	labels := strings.Split(host, ".")
	return labels[max(0, len(labels)-2)]
}

// sum is a form of written arithmetic and the words that tools use for it.
type sum struct {
	written *regexp.Regexp
	phrase  phrase
}

// arithmetic lists the forms of written sums. A minus, a slash and an x must
// have spaces around them, so that dates and sizes do not match.
func arithmetic() []sum {
	var list []sum
	for _, s := range [...]struct{ sign, written, operation string }{
		{"+", `\d\s*\+\s*[\d(]|\d\s+plus\s+\d`, "add"},
		{"-", `\d\s+[-−]\s+[\d(]|\d\s+minus\s+\d`, "subtract"},
		{"*", `\d\s*[*×]\s*[\d(]|\d\s+(x|times)\s+\d`, "multiply"},
		{"/", `\d\s*÷\s*\d|\d\s+/\s+\d|\d\s+divided by\s+\d`, "divide"},
		{"^", `\d\s*(\^|\*\*)\s*\d|\d\s+to the power of\s+\d`, "power"},
		{"%", `\d\s*(%|percent) of\s+\d`, "percentage"},
	} {
		list = append(list, sum{
			regexp.MustCompile(s.written),
			phrase{words: []string{s.sign}, means: []string{"calculate", s.operation, "arithmetic", "math", "expression"}},
		})
	}
	return list
}

// isNumber reports whether a token consists of digits.
func isNumber(token string) bool { return strings.Trim(token, digits) == "" }

const digits = "0123456789"
