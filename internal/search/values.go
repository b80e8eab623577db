package search

import (
	"regexp"
	"strings"
)

// withoutValues takes what is a value and no word out of a query: of an
// address on the web the name of the site stays, of a mail address that it is
// one. What stands in them says what a tool shall work on, not what it does.
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

// site is what people call a host: github of api.github.com:443.
func site(host string) string {
	host, _, _ = strings.Cut(strings.TrimRight(host, `.,;:!?)"'`), ":")
	labels := strings.Split(host, ".")
	return labels[max(0, len(labels)-2)]
}

// sum is arithmetic that is written out, and what tools call it.
type sum struct {
	written *regexp.Regexp
	phrase  phrase
}

// arithmetic lists the ways to write sums. A minus, a slash and an x need
// spaces around them, or every date and size would be one.
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

// isNumber reports whether a token has digits only.
func isNumber(token string) bool { return strings.Trim(token, digits) == "" }

const digits = "0123456789"
