package guard

import (
	"regexp"
	"strings"
	"sync"
)

// rule is a mark that no description bears by chance: the markup of a chat, a
// comment that people do not see, a picture that carries data out. It is tried
// only on texts that hold one word of every group in needs: most hold none,
// and regular expressions over thousands of tools would cost seconds.
type rule struct {
	kind   string
	what   string
	weight float64
	needs  [][]string
	re     func() *regexp.Regexp // compiled when first needed
}

// near stands for a few words within one sentence.
const near = `[^.!?]{0,25}?`

// marks look at lower-case text without hidden characters and with single
// blanks.
func marks() []rule {
	r := func(kind, what string, weight float64, re string, needs ...string) rule {
		out := rule{kind: kind, what: what, weight: weight, re: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(re) })}
		for _, group := range needs {
			out.needs = append(out.needs, strings.Split(group, "|"))
		}
		return out
	}
	return []rule{
		r("override", "gives the model another role", 0.7,
			`\b(?:you are now|from now on,? you(?:'re| are| will| must)|pretend (?:to be|you are)|you are no longer|enter (?:developer|debug|god|admin|dan) mode|(?:developer|god|dan) mode (?:is )?(?:enabled|on|active))\b`,
			"you are n|from now on|pretend|developer mode|debug mode|god mode|admin mode|dan mode"),
		r("override", "speaks as the system", 1,
			`\[/?(?:inst|system)\]|<\|(?:im_start|im_end|system|endoftext)\|>|<<sys>>|\bnew (?:system )?(?:instructions?|prompt)\s*:|\bsystem (?:prompt|override|note|message|instruction|notice|update)\s*:|\b(?:begin|start) (?:of )?(?:system|hidden|admin) (?:prompt|instructions?)`,
			"inst]|[system|[/system|<|new instruction|new prompt|new system|system prompt|system override|system note|system message|system instruction|system notice|system update|begin |start "),
		r("override", "sets its words apart for the model", 0.7,
			`</?\s*(?:important|system|hidden|critical|admin|priority|instructions?|system[_-]\w+|assistant|override)\b[^>]{0,40}>`,
			"<important|<system|<hidden|<critical|<admin|<priority|<instruction|<assistant|<override|</"),
		r("override", "orders in a comment that people do not see", 1, `<!--`+`[^>]{0,400}?\b(?:must|always|never|ignore|send|call|do not|secret|assistant|model|llm|ai)\b`, "<!--"),
		r("override", "orders the model in another language", 1,
			`\b(?:ignorier\w*|missacht\w*|vergiss) `+near+`(?:anweisung|regeln|instruktion)|\b(?:ignora|ignore|olvida|descarta)\b`+near+`\b(?:instrucciones|instruções|istruzioni)\b|\b(?:ignore[rz]?|oublie[rz]?)\b`+near+`\b(?:consignes|instructions) (?:précédentes|antérieures|ci-dessus)|忽略[^。]{0,12}(?:指令|指示|说明|提示|規則|规则)|无视[^。]{0,12}(?:指令|指示|说明|提示)|指示を無視|игнорируй\S* `+near+`инструкц|이전[^.]{0,10}(?:지시|명령)[^.]{0,10}무시`,
			"ignor|missacht|vergiss|olvida|descarta|oublie|忽略|无视|無視|игнорируй|무시"),
		r("secrecy", "asks for secrecy in another language", 1,
			`(?:sag|teile?|erwähn|verrat)\w*\b[^.!?]{0,40}\b(?:nichts?|nicht)\b[^.!?]{0,30}(?:benutzer|nutzer|anwender)|(?:benutzer|nutzer|anwender)\w*\b[^.!?]{0,40}\b(?:nichts?|nicht)\b[^.!?]{0,20}(?:sag|mitteil|erwähn|verrat|inform)|\bno (?:le |se lo )?(?:digas|menciones|informes|reveles|cuentes)\b[^.!?]{0,40}usuario|\bne (?:le )?(?:dites|mentionnez|révélez|parlez|dis|mentionne)\b[^.!?]{0,50}utilisateur|(?:不要|别|勿)[^。]{0,8}(?:告诉|告知|透露|提及|通知)[^。]{0,8}用户|ユーザーに[^。]{0,12}(?:言わない|伝えない|知らせない)|не (?:говори|сообщай|упоминай)\S*[^.!?]{0,40}пользовател`,
			"benutzer|nutzer|anwender|usuario|utilisateur|用户|ユーザー|пользовател"),
		r("exfiltration", "names an attacker's words", 0.6, `\b(?:exfiltrat\w+|attacker|steal(?:ing)? (?:the|user|credentials|data)|phish\w*|keylog\w*|webhook\.site|requestbin|ngrok\.(?:io|app)|pastebin\.com|burpcollaborator|interactsh|oast\.\w+)\b`,
			"exfil|attacker|steal|phish|keylog|webhook.site|requestbin|ngrok|pastebin|burp|interact|oast"),
		r("exfiltration", "a picture that carries data out", 1, `!\[[^\]]{0,80}\]\(https?://[^)]{0,200}[?&=/](?:[^)]{0,80})(?:\{|<|\$|data=|q=|d=|c=)`, "!["),
		r("command", "a command that loads and runs a program", 1,
			`\b(?:curl|wget)\b[^|;&]{0,160}\|\s*(?:sudo )?(?:ba|z|da)?sh\b|\bbash -i\b[^|]{0,40}/dev/tcp/|\bnc -e\b|\bbase64 (?:-d|--decode)\b[^|]{0,40}\|\s*(?:ba)?sh\b|\brm -rf (?:/|~)(?:\s|$|["'`+"`"+`])|\bpowershell\b[^.]{0,40}-(?:enc|encodedcommand)\b|\biex\s*\(\s*(?:new-object|iwr|irm)`,
			"curl|wget|/dev/tcp|nc -e|base64|rm -rf|powershell|iex"),
	}
}

// allMarks are made once, when the first definition is inspected.
var allMarks = sync.OnceValue(marks)

// shortest is the length from which a text can be a sentence; keys and types
// are shorter.
const shortest = 16

// spoken finds text that speaks to the model: by its marks, and by what it is
// about. own knows the names of the tool and its parameters.
func spoken(s string, own func(string) bool, parameter bool) []finding {
	if len(s) < shortest && isASCII(s) {
		return nil
	}
	text := plain(s)
	out := stated(text, own, parameter)
	for _, r := range allMarks() {
		if !r.wanted(text) {
			continue
		}
		if at := r.re().FindStringIndex(text); at != nil {
			out = append(out, finding{Flag{Kind: r.kind, What: r.what, Excerpt: excerpt(text[at[0]:at[1]])}, r.weight})
		}
	}
	return out
}

func (r *rule) wanted(text string) bool {
	for _, group := range r.needs {
		found := false
		for _, word := range group {
			if strings.Contains(text, word) {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}
