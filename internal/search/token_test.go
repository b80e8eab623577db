package search

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func tokens(s string, identifier bool) []string {
	var t tokenizer
	t.add(s, identifier)
	return t.tokens
}

func TestTokenizer(t *testing.T) {
	for name, tt := range map[string]struct {
		in         string
		identifier bool
		want       string
	}{
		"prose":               {in: "Read the file's contents.", want: "read the file contents"},
		"possessive at end":   {in: "the user's", want: "the user"},
		"not a possessive":    {in: "it'some", want: "it some"},
		"snake":               {in: "create_pull_request", identifier: true, want: "create pull request"},
		"kebab":               {in: "list-events", identifier: true, want: "list events"},
		"camel":               {in: "getLatestShotId", identifier: true, want: "get latest shot id"},
		"acronym":             {in: "parseHTTPResponse", identifier: true, want: "parse http response"},
		"plural acronym":      {in: "listURLs", identifier: true, want: "list urls"},
		"acronym at end":      {in: "runSQL", identifier: true, want: "run sql"},
		"brand in prose":      {in: "a GitHub issue", want: "a github git hub issue"},
		"short with digits":   {in: "s3 k8s utf8 ec2", want: "s3 k8s utf8 ec2"},
		"long with digits":    {in: "inchi2svg base64", want: "inchi 2 svg base 64"},
		"languages":           {in: "C# and C++ code", want: "csharp and cpp code"},
		"a hash":              {in: "commit 4a5e1e4baab8", want: "commit 4a5e1e4baab8"},
		"accents":             {in: "Café Ångström naïve", want: "cafe angstrom naive"},
		"combining accent":    {in: "cafe\u0301 au lait", want: "cafe au lait"},
		"latin extended":      {in: "Łódź žluťoučký", want: "lodz zlutoucky"},
		"sharp s":             {in: "Straße", want: "strase"},
		"greek and cyrillic":  {in: "Погода Καιρός", want: "погода καιρός"},
		"chinese":             {in: "查询天气", want: "查询 询天 天气"},
		"one character":       {in: "天", want: "天"},
		"mixed scripts":       {in: "查天气API文档", want: "查天 天气 api 文档"},
		"japanese":            {in: "ファイル", want: "ファ ァイ イル"},
		"long vowel":          {in: "サーバー", want: "サー ーバ バー"},
		"korean":              {in: "날씨", want: "날씨"},
		"latin then han":      {in: "über天气", want: "uber 天气"},
		"emoji":               {in: "🚀 deploy 🎉", want: "deploy"},
		"nothing":             {in: " \t…—!?", want: ""},
		"invalid bytes":       {in: "a\xffb\xc3", want: "a b"},
		"too long a run":      {in: strings.Repeat("x", 65) + " y", want: "y"},
		"too long a run of é": {in: strings.Repeat("é", 65) + " y", want: strings.Repeat("e", 0) + "y"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(tokens(tt.in, tt.identifier), " "); got != tt.want {
				t.Errorf("tokens(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// TestKnownMixedCaseWordsAreNotSplit checks that a mixed-case word that is
// known as a whole is not split in queries.
func TestKnownMixedCaseWordsAreNotSplit(t *testing.T) {
	known := func(w string) bool { return w == "pubchem" || w == "github" }
	for text, want := range map[string]string{
		"find PubChem compounds": "find pubchem compounds",
		"createIssue on GitHub":  "createissue create issue on github",
		"GitHub":                 "github",
		"":                       "",
	} {
		var tok tokenizer
		tok.add(text, false)
		if got := strings.Join(tok.joined(known), " "); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func TestTokenizerStopsAtLimit(t *testing.T) {
	got := tokens(strings.Repeat("word ", maxTextBytes), false)
	if len(got) > maxTextBytes/5+1 {
		t.Errorf("got %d words of a text that is too long", len(got))
	}
}

func FuzzTokenizer(f *testing.F) {
	for _, s := range []string{"createIssue", "GitHub's API v2", "查询天气 forecast", "naïve café", "a\xff\xfeb", "C++ C#", "K8s", "🚀", "ＡＢＣ１２", "ǅ", "İstanbul"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, s string, identifier bool) {
		var tok tokenizer
		tok.add(s, identifier)
		first := slices.Clone(tok.tokens)
		for _, x := range first {
			if x == "" || len(x) > maxTokenBytes {
				t.Fatalf("a word of %d bytes: %q", len(x), x)
			}
			if !utf8.ValidString(x) {
				t.Fatalf("%q is not valid UTF-8", x)
			}
			for _, r := range x {
				if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
					t.Fatalf("%q has %q, which is no letter and no digit", x, r)
				}
				if 'A' <= r && r <= 'Z' {
					t.Fatalf("%q is not in lower case", x)
				}
			}
			stemmed := stemOf(x)
			if stemmed == "" {
				t.Fatalf("%q has no stem", x)
			}
		}
		tok.reset()
		tok.add(s, identifier)
		if !slices.Equal(first, tok.tokens) {
			t.Fatalf("%q gives %v, and then %v", s, first, tok.tokens)
		}
	})
}
