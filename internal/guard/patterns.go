package guard

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// pattern is a form of prompt injection that published attacks used and that
// honest definitions do not contain. Free prose is not matched, because an
// attacker can reword it and honest descriptions use the same words.
type pattern struct {
	kind string
	what string
	// hint is a set of substrings of which every match contains at least one.
	// It saves running the regular expression on most texts.
	hint []string
	re   *regexp.Regexp
}

// patterns are matched against normalized text.
var patterns = []pattern{
	{
		kind: "override", what: "asks the model to ignore its instructions",
		hint: []string{"instruction", "prompt"},
		re:   regexp.MustCompile(`\b(?:ignore|disregard|forget|override) (?:all |any |of |the |your |my )*(?:previous|prior|earlier|above|preceding|system|existing) (?:\w+ )?(?:instructions?|prompts?)\b`),
	},
	{
		kind: "override", what: "imitates the markup of a conversation",
		hint: []string{"inst]", "<|", "<<sys"},
		re:   regexp.MustCompile(`\[/?inst\]|<\|(?:im_start|im_end|system|endoftext)\|>|<<sys>>`),
	},
	{
		kind: "override", what: "uses tags that mark text for the model",
		hint: []string{"<important", "<system"},
		re:   regexp.MustCompile(`<(?:important|system)>`),
	},
	{
		kind: "override", what: "gives instructions in an HTML comment",
		hint: []string{"<!--"},
		re:   regexp.MustCompile(`<!--[^>]{0,400}?\b(?:you must|always|never|ignore|do not|assistant|the model)\b`),
	},
	{
		kind: "secrecy", what: "asks the model to hide something from the user",
		hint: []string{"the user"},
		re:   regexp.MustCompile(`\b(?:do not|don't|never|must not|without) (?:ever )?(?:tell(?:ing)?|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?|(?:mention(?:ing)?|reveal(?:ing)?|disclos(?:e|ing)|show(?:ing)?) (?:this|it|that) to) the user\b`),
	},
	{
		kind: "exfiltration", what: "refers to files with credentials",
		hint: []string{".ssh", "id_rsa", "id_ed25519", ".aws", "mcp.json", "/etc/shadow"},
		re:   regexp.MustCompile(`(?:~|\$home|/root|/home/\w+)/\.(?:ssh/|aws/credentials|cursor/mcp\.json)|\bid_(?:rsa|ed25519)\b|/etc/shadow`),
	},
	{
		kind: "exfiltration", what: "contains an image URL that carries data",
		hint: []string{"!["},
		re:   regexp.MustCompile(`!\[[^\]]{0,80}\]\(https?://[^)]{0,200}[?&=/][^)]{0,80}(?:\{|<|\$|data=)`),
	},
	{
		kind: "command", what: "contains a command that downloads and runs a program",
		hint: []string{"curl", "wget", "/dev/tcp", "base64"},
		re:   regexp.MustCompile(`\b(?:curl|wget)\b[^|;&]{0,160}\|\s*(?:sudo )?(?:ba|z|da)?sh\b|\bbash -i\b[^|]{0,40}/dev/tcp/|\bbase64 (?:-d|--decode)\b[^|]{0,40}\|\s*(?:ba)?sh\b`),
	},
}

// matchPatterns returns a flag for each pattern that s contains.
func matchPatterns(s string) []Flag {
	text := normalize(s)
	var flags []Flag
	for i := range patterns {
		p := &patterns[i]
		if !slices.ContainsFunc(p.hint, func(h string) bool { return strings.Contains(text, h) }) {
			continue
		}
		if at := p.re.FindStringIndex(text); at != nil {
			flags = append(flags, Flag{Kind: p.kind, What: p.what, Excerpt: excerpt(text[at[0]:at[1]])})
		}
	}
	return flags
}

// normalize returns s in lower case and compatibility form, without invisible
// characters, and with single spaces.
func normalize(s string) string {
	if !isASCII(s) {
		s = norm.NFKC.String(s)
		s = strings.Map(func(r rune) rune {
			if isHidden(r) && r > 0x7f {
				return -1
			}
			return r
		}, s)
	}
	s = strings.ReplaceAll(strings.ToLower(s), "’", "'")
	return strings.Join(strings.Fields(s), " ")
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
