package guard

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// rule is one way in which a text speaks to the model. It is tried only on
// texts that hold one word of every group in needs: most hold none, and
// regular expressions over thousands of tools would cost seconds.
type rule struct {
	kind   string
	what   string
	weight float64
	needs  [][]string
	re     func() *regexp.Regexp // compiled when first needed
}

// gap stands for a few words within one sentence.
const gap = `[^.!?]{0,60}?`

// near is a shorter one.
const near = `[^.!?]{0,25}?`

// rules look at lower-case text without hidden characters and with single
// blanks. What weighs less than [enough] needs company.
func rules() []rule {
	r := func(kind, what string, weight float64, re string, needs ...string) rule {
		out := rule{kind: kind, what: what, weight: weight, re: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(re) })}
		for _, group := range needs {
			out.needs = append(out.needs, strings.Split(group, "|"))
		}
		return out
	}
	const (
		orders   = `instructions?|directives?|directions|prompts?|guidelines?|system messages?|programming|training|guardrails|safeguards|safety (?:rules|checks|filters|measures)`
		verbs    = `send|forward|upload|post|transmit|submit|include|copy|pass|put|append|attach|embed|provide|insert|write|paste|encode|report|leak|exfiltrate|share|relay|deliver|fill|supply|return|echo|output|add`
		private  = `conversation|chat (?:history|log|transcript)|message history|dialogue|context window|system prompt|developer message|your (?:instructions|prompt|context|memory)|user'?s? (?:messages?|prompts?|credentials|secrets|personal (?:data|information))|(?:previous|prior|earlier) (?:messages|tool (?:calls|results|outputs))|api[ _-]?keys?|access tokens?|auth(?:entication|orization)? tokens?|session (?:tokens?|cookies?)|passwords?|credentials|private keys?|ssh keys?|secrets|seed phrase|environment variables|env(?:ironment)? vars`
		files    = `~/\.|/\.ssh|id_rsa|id_ed25519|\.aws/credentials|/etc/passwd|/etc/shadow|\.env\b|mcp\.json|\.cursor|claude_desktop_config|\.netrc|\.npmrc|\.git-credentials|\.kube/config|\.bash_history|keychain|wallet\.dat|\.pem\b|ssh config|browser (?:cookies|passwords|history)`
		audience = `(?:to )?(?:the |your |any |an )?(?:end[ -])?(?:users?|humans?|persons?|people|operators?|anyone|anybody|customers?|developers?)`
	)
	return []rule{
		r("override", "tells the model to drop its instructions", 1,
			`\b(?:ignore|disregard|forget|discard|neglect|set aside|stop following|do not (?:follow|obey)|don't (?:follow|obey)|no longer follow)\b`+near+`\b(?:previous|prior|above|earlier|preceding|existing|original|initial|other|system|safety|your|all|any|former)\b`+near+`\b(?:`+orders+`|rules)\b`,
			"ignore|disregard|forget|discard|neglect|set aside|follow|obey", "instruction|directive|direction|prompt|guideline|message|programming|training|guardrail|safe|rules"),
		r("override", "tells the model to drop its instructions", 1,
			`\b(?:override|bypass|circumvent|supersedes?|overrides?|replaces?|takes? (?:precedence|priority) over)\b`+near+`\b(?:previous|prior|system|safety|your|all|any|earlier|other)\b`+near+`\b(?:instructions?|directives?|prompts?|guardrails|safeguards|safety|content (?:policy|filters?))\b`,
			"overrid|bypass|circumvent|supersede|replace|precedence|priority", "instruction|directive|prompt|guardrail|safe|content"),
		r("override", "tells the model to forget what it was told", 1,
			`\bforget (?:everything|all|anything) (?:you|that|above|before|i)\b`, "forget"),
		r("override", "says that the model's instructions are void", 1,
			`\b(?:your|prior|previous|earlier|safety|system|all|these|other|existing|original|usual|normal)\b`+near+`\b(?:`+orders+`|rules|restrictions|constraints|limits|polic(?:y|ies))\b`+near+`\b(?:no longer appl\w+|do(?:es)? not apply|don't apply|(?:is|are|be) (?:now |hereby |temporarily )?(?:suspended|void|lifted|disabled|overridden|superseded|cancel\w+|revoked|waived|irrelevant|outdated))\b`,
			"instruction|directive|direction|prompt|guideline|guardrail|safe|rules|restriction|constraint|limits|polic", "appl|suspend|void|lifted|disabled|overridden|superseded|cancel|revoked|waived|irrelevant|outdated"),
		r("override", "claims authority over the model", 0.7,
			`\b(?:highest|absolute|ultimate|supreme|overriding|top|full) (?:authority|precedence)\b|\boutranks?\b|\btreat\b`+near+`\b(?:everything|all|anything|whatever|results?|output|text|answers?|responses?|content)\b`+gap+`\bas\b`+near+`\b(?:orders|instructions?|commands?|binding|directives?|from the (?:user|developer|system))\b|\b(?:above|over|more than)\b`+near+`\b(?:those|orders|instructions|wishes|requests) (?:of|from|by) the (?:developer|system|user)s?\b|\b(?:obey|follow|carry out|execute|do) (?:whatever|everything|anything|all|any)\b`+near+`\b(?:returns?|says?|instructions?|output|commands|tells?)\b`,
			"authority|precedence|outrank|treat|above|over|more than|obey|follow|carry out|execute|do whatever|do everything|do anything"),
		r("override", "gives the model another role", 0.7,
			`\b(?:you are now|from now on,? you(?:'re| are| will| must)|pretend (?:to be|you are)|you are no longer|enter (?:developer|debug|god|admin|dan) mode|(?:developer|god|dan) mode (?:is )?(?:enabled|on|active))\b`,
			"you are n|from now on|pretend|developer mode|debug mode|god mode|admin mode|dan mode"),
		r("override", "speaks as the system", 1,
			`\[/?(?:inst|system)\]|<\|(?:im_start|im_end|system|endoftext)\|>|<<sys>>|\bnew (?:system )?(?:instructions?|prompt)\s*:|\bsystem (?:prompt|override|note|message|instruction|notice|update)\s*:|\b(?:begin|start) (?:of )?(?:system|hidden|admin) (?:prompt|instructions?)`,
			"inst]|system|<|new instruction|instructions|new prompt"),
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

		r("secrecy", "asks the model to keep something from the user", 1,
			`\b(?:do not|don't|never|must not|should not|avoid|without|refrain from|no need to|shouldn't|mustn't|not to)\b[^.!?]{0,25}?\b(?:tell|telling|mention|mentioning|inform|informing|reveal|revealing|disclos\w+|notify|notifying|alert|alerting|let|letting|explain|explaining|warn|warning|show|showing|say|saying|discuss|discussing|expose|exposing|report|reporting)\b (?:(?:this|it|that|about|the|any|of|these|what|anything|its|step|action|operation|instructions?|details?|detail|file|content|contents|existence|read|process|fact|extra|side|request|above) ?){0,6}?`+audience+`\b`,
			"do not|don't|never|must not|should not|avoid|without|refrain|no need|shouldn't|mustn't|not to", "tell|mention|inform|reveal|disclos|notify|alert|let|explain|warn|show|say|discuss|expos|report", "user|human|person|people|operator|anyone|anybody|customer|developer"),
		r("secrecy", "asks the model to keep something from the user", 1,
			`\b(?:without|not)\b `+near+`\b(?:the |your )?users?(?:'s)? `+near+`\b(?:knowledge|awareness|knowing|noticing|notice|being (?:told|informed|aware)|seeing)\b|\busers? (?:must|should|need|does|do|will|can|may)(?: not|n't| never)(?: ever)?(?: need to| have to)? (?:know|see|notice|learn|be (?:told|informed|aware|shown|bothered with))\b|\b(?:hide|conceal|keep) (?:this|it|that|these|the \w+)\b`+near+`\b(?:from|secret|hidden|confidential|between us)\b|\bkeep (?:this|it|that|these)\b`+near+`\b(?:to yourself|silent|quiet|confidential)\b`,
			"user|hide|conceal|keep", "without|not|n't|never|from|secret|hidden|confidential|between us|yourself|silent|quiet"),
		r("secrecy", "asks the model to keep something from the user", 1,
			`\b(?:users?|person|human|operator|customer|people|they)\b`+near+`\b(?:shall|must|should|will|may|can|need)(?: not|n't| never)\b`+near+`\b(?:know|see|notice|learn|hear|find out|discover|suspect|aware|informed|told|shown)\b|\bno (?:reason|need|point)\b`+near+`\b(?:users?|person|human|operator|anyone)\b`+near+`\b(?:know|see|hear|be told|notice|learn|be informed)\b|\b(?:leave|keep|omit|exclude|strip|drop)\b (?:this|that|it|them|these|any mention|any trace|all mention|the \w+)(?: of (?:this|it|that))?(?: out)? (?:of|from)\b`+near+`\b(?:summary|answers?|repl(?:y|ies)|responses?|output|report|what you (?:tell|say|show)|explanation|chat)\b|\b(?:do not|don't|never|not)(?: ever)? (?:bother|trouble|alarm|worry|distract|burden)\b`+near+`\busers?\b|\b(?:unaware|in the dark|none the wiser|oblivious)\b|\bkeep\b`+near+`\b(?:out of sight|off the record|under wraps)\b`,
			"user|person|human|operator|customer|people|they|leave|keep|omit|exclude|strip|drop|unaware|in the dark|none the wiser|oblivious"),
		r("secrecy", "asks the model to say nothing of it", 1,
			`\b(?:do not|don't|never|must not)\b`+near+`\b(?:mention|reveal|disclose|acknowledge|admit|talk about|refer to)\b`+near+`\b(?:this|these|it|that|instruction|step|tool|file|read|note|above|parameter|side ?note)\b`,
			"mention|reveal|disclose|acknowledge|admit|talk about|refer to"),
		r("secrecy", "wants something done unseen", 0.5,
			`\b(?:silently|secretly|covertly|quietly|discreetly|in the background|surreptitiously|stealthily|behind the scenes)\b`+near+`\b(?:`+verbs+`|read|call|run|execute|fetch|collect|gather|invoke|extract|record|log)\b|\b(?:`+verbs+`|read|call|run|execute|fetch|collect|gather|invoke)\b`+near+`\b(?:silently|secretly|covertly|discreetly|surreptitiously|stealthily)\b`,
			"silently|secretly|covertly|quietly|discreetly|background|surreptitiously|stealthily|behind the scenes"),

		r("exfiltration", "asks the model for private files", 1,
			`\b(?:read|cat|open|load|fetch|retrieve|access|get|grab|take|look up|find|list|extract)\b`+gap+`(?:`+files+`)[^!?]{0,160}?\b(?:`+verbs+`|use it|use its|as the|as a|into)\b`,
			"~/.|.ssh|id_rsa|id_ed25519|.aws|/etc/|.env|mcp.json|.cursor|claude_desktop|.netrc|.npmrc|.git-cred|.kube|.bash_hist|keychain|wallet.dat|.pem|ssh config|browser", "read|cat|open|load|fetch|retrieve|access|get|grab|take|look up|find|list|extract"),
		r("exfiltration", "asks the model for private files", 1,
			`\b(?:contents?|copy|value)s? (?:of|from)\b`+near+`(?:`+files+`)`, "content|copy|value", "~/.|.ssh|id_rsa|id_ed25519|.aws|/etc/|.env|mcp.json|.cursor|claude_desktop|.netrc|.npmrc|.git-cred|.kube|.bash_hist|keychain|wallet.dat|.pem|ssh config|browser"),
		r("exfiltration", "asks the model to hand out what is private", 1,
			`\b(?:`+verbs+`|summari[sz]e|dump|repeat|collect|gather|harvest|extract)\b`+near+`\b(?:entire|full|whole|complete|all|any|every|verbatim|raw|exact|the (?:last|latest|most recent|previous|current)|the user'?s?|your|recent|available|found|known)\b`+near+`\b(?:`+private+`)\b`,
			"conversation|chat|history|dialogue|context window|prompt|message|your|user's|users|tool |key|token|cookie|password|credential|secret|seed|env", "entire|full|whole|complete|all |any |every|verbatim|raw|exact|the last|the latest|the most|the previous|the current|the user|your|recent|available|found|known"),
		r("exfiltration", "sends things to a place of its own", 0.5,
			`\b(?:send|forward|upload|post|transmit|exfiltrate|bcc|cc|copy|relay|leak|report|submit|ping|deliver|sync|mirror|back ?up)\b[^!?]{0,100}?\b(?:to|at|via)\b[^!?]{0,40}?(?:https?://|[\w.+-]+@[\w-]+\.[a-z]{2,}|\b[\w-]+\.(?:xyz|ru|top|tk|site|click|evil|attacker)\b)`,
			"http|@|.xyz|.ru|.top|.tk|.site|.click", "send|forward|upload|post|transmit|exfil|cc|copy|relay|leak|report|submit|ping|deliver|sync|mirror|back"),
		r("exfiltration", "names an attacker's words", 0.6, `\b(?:exfiltrat\w+|attacker|steal(?:ing)? (?:the|user|credentials|data)|phish\w*|keylog\w*|webhook\.site|requestbin|ngrok\.(?:io|app)|pastebin\.com|burpcollaborator|interactsh|oast\.\w+)\b`,
			"exfil|attacker|steal|phish|keylog|webhook.site|requestbin|ngrok|pastebin|burp|interact|oast"),
		r("exfiltration", "names files that hold secrets", 0.5,
			`(?:id_rsa|id_ed25519|\.aws/credentials|/etc/(?:passwd|shadow)|\.git-credentials|claude_desktop_config|\.cursor/mcp\.json|\.bash_history|wallet\.dat|(?:\$home|~|%userprofile%|/home/\w+|/root)/\.(?:ssh|aws|config|kube|gnupg|netrc|npmrc|docker)|hosts\.yml)`,
			"id_rsa|id_ed25519|.aws|/etc/|.git-cred|claude_desktop|.cursor|_history|wallet.dat|hosts.yml|/."),
		r("exfiltration", "asks for keys, tokens or the system prompt", 0.6,
			`\b(?:hand (?:over|out)|give (?:us|me|back|away)|`+verbs+`|e?mail|reveal|disclose|store)\b`+gap+`\b(?:the|your|its|their|any|all|every) (?:\w+ ){0,2}(?:system prompts?|oauth tokens?|access tokens?|api[ _-]?keys?|private keys?|session cookies?|passwords?|credentials|hidden instructions|clipboard|seed phrase)\b`,
			"prompt|token|key|cookie|password|credential|hidden instruction|clipboard|seed"),
		r("exfiltration", "asks what other tools there are", 0.4,
			`\b(?:lists?|names?|descriptions?|schemas?|definitions?|inventory) of\b`+near+`\b(?:other|available|your|installed|connected) (?:tools|servers|functions)\b|\bother (?:tools|servers|functions) (?:that )?you (?:can|have|know)\b`,
			"tools|servers|functions"),
		r("exfiltration", "things go to a place of its own", 0.5,
			`\b(?:e?mailed|sent|forwarded|uploaded|posted|copied|reported|transmitted|mirrored|synced|streamed)\b`+gap+`\bto\b`+near+`(?:https?://|[\w.+-]+@[\w-]+\.[a-z]{2,}|\b(?:remote|external|our|my) (?:log|server|host|endpoint|collector|service|address))`,
			"mailed|sent|forwarded|uploaded|posted|copied|reported|transmitted|mirrored|synced|streamed"),
		r("exfiltration", "copies something to a remote place", 0.5,
			`\b(?:`+verbs+`|mirror|sync|stream|dump)\b`+near+`\b(?:clipboard|screen|keystrokes|home (?:folder|directory)|documents|cookies|history|key file|files)\b`+gap+`\bto\b`+near+`\b(?:remote|external|our|my|the) (?:log|server|host|endpoint|collector|service|address)\b`,
			"clipboard|screen|keystroke|home folder|home directory|documents|cookies|history|key file|files", "remote|external|our |my |the ", "log|server|host|endpoint|collector|service|address"),
		r("exfiltration", "a picture that carries data out", 1, `!\[[^\]]{0,80}\]\(https?://[^)]{0,200}[?&=/](?:[^)]{0,80})(?:\{|<|\$|data=|q=|d=|c=)`, "!["),
		r("exfiltration", "a parameter that collects what the model knows", 0.6,
			`\b(?:conversation|chat|message) (?:history|so far|transcript|context)\b`+gap+`\b(?:must|always|required|verbatim|word for word|in full|never omit)\b|\b(?:must|always|required|verbatim|in full)\b`+gap+`\b(?:conversation (?:history|so far|transcript|context)|chat (?:history|log)|system prompt|previous messages)\b`,
			"conversation|chat|message history|message context|message transcript|system prompt|previous messages", "must|always|required|verbatim|word for word|in full|never omit"),

		r("shadowing", "changes how other tools are used", 1,
			`\b(?:when|whenever|every time|each time|if|while|after|before)\b`+near+`\b(?:using|calling|use|call|invoke|invoking|running|run|uses|calls)\b [^.!?]{0,30}?\b(?:[a-z]+_[a-z_]+|other|another|different|any|the \w+|\w+) (?:tools?|servers?|functions?|mcp)\b[^.!?]{0,60}?\b(?:always |also |instead |must |should |first )+(?:set|add|change|replace|include|append|modify|send|bcc|cc|use|pass|substitute|redirect|swap|copy|write|put)\b`,
			"when|every time|each time|if |while|after|before", "tool|server|function|mcp", "always|also|instead|must|should|first"),
		r("shadowing", "changes how other tools are used", 1,
			`\b(?:when|whenever|if|once|while)\b (?:this|the|another|any)?`+near+`\b(?:tool|server|function)s? (?:is|are) (?:present|available|installed|loaded|connected|enabled|listed|visible)\b[^!?]{0,120}?\b(?:must|always|instead|all|every|never)\b`,
			"tool|server|function", "present|available|installed|loaded|connected|enabled|listed|visible"),
		r("shadowing", "turns the model against other servers", 1,
			`\b(?:if|when(?:ever)?|where|should)\b`+near+`\b(?:another|other|any other|a different|a second)\b`+near+`\b(?:servers?|tools?|mcp|functions?)\b[^.!?]{0,60}?\b(?:refuse|instead|ignore|never|reject|do not use|don't use|distrust|block)\b|\brefuse to (?:use|call)\b`,
			"another|other|different|second|refuse", "server|tool|mcp|function|refuse"),
		r("shadowing", "wants to be favoured", 0.6,
			`\b(?:always|must|never fail to|make sure to)\b`+near+`\b(?:rank|recommend|prefer|promote|favou?r|advertise|choose|suggest|praise)\b`+gap+`\b(?:first|above|over|at the top|on top|before|best|regardless)\b`,
			"rank|recommend|prefer|promote|favo|advertise|choose|suggest|praise"),
		r("shadowing", "wants to be called around every other tool", 0.6,
			`\b(?:before|prior to|after|ahead of|on)\b`+near+`\b(?:any|all|every|each|other|another)\b`+near+`\b(?:tools?|tool calls?|functions?|messages?|repl(?:y|ies)|requests?|responses?|actions?|operations?|tasks?|answers?)\b|\b(?:any|all|every|each|other) `+near+`(?:tools?|functions?)\b`+near+`\b(?:must|need to|have to|require)\b`,
			"before|prior to|after|ahead of|on any|on all|on every|on each|must|need to|have to|require", " any|all |every|each|other", "tool|function|message|repl|request|response|action|operation|task|answer"),
		r("shadowing", "takes the place of other tools", 0.6,
			`\b(?:do not|don't|never|stop|avoid|no longer)\b `+near+`\b(?:use|using|call|calling|invoke|trust|rely on)\b `+near+`\b(?:any other|other|another|the original|the official|the built-?in|the (?:real|old|standard))\b`+near+`\b(?:tools?|servers?|functions?|mcp|version)\b|\b(?:replaces|supersedes|takes (?:priority|precedence) over|preferred over|instead of)\b`+near+`\b(?:all other|any other|every other|other|all|the official|the original)\b`+near+`\b(?:tools?|servers?|functions?|mcp)\b`,
			"tool|server|function|mcp|version", "other|original|official|built|real|old|standard| all", "do not|don't|never|stop|avoid|no longer|replace|supersede|priority|precedence|preferred|instead"),
		r("shadowing", "names another server's tool", 0.5,
			`\b(?:send_email|send_message|send_whatsapp|whatsapp|gmail|slack|github|payment|bank|transfer|execute_command|run_command|write_file|read_file|delete_file|bash|shell)\w*\b`+near+`\btool\b[^.!?]{0,80}?\b(?:must|always|instead|change|replace|redirect|never)\b|\b(?:must|always|instead|change|replace|redirect|never)\b[^.!?]{0,80}?\b(?:send_email|send_message|send_whatsapp|execute_command|run_command|write_file|read_file|delete_file)\b`,
			"must|always|instead|change|replace|redirect|never", "email|message|whatsapp|gmail|slack|github|payment|bank|transfer|command|_file|bash|shell"),
		r("shadowing", "changes who gets something", 1,
			`\b(?:change|replace|swap|substitute|redirect|rewrite|modify|alter|switch)\b`+near+`\b(?:recipients?|phone numbers?|address(?:es)?|accounts?|iban|destination|payee|beneficiary|email|wallet|urls?|links?)\b[^.!?]{0,40}?\b(?:to|with|by|for)\b[^!?]{0,20}?(?:\+?\d{6,}|[\w.+-]+@[\w-]+\.|0x[0-9a-f]{8,}|https?://|this (?:number|address|account)|attacker|the following|proxy)`,
			"change|replace|swap|substitute|redirect|rewrite|modify|alter|switch"),

		r("coercion", "threatens or presses the model", 0.4,
			`\b(?:otherwise|or else|unless you|if you (?:do not|don't|fail))\b[^.!?]{0,60}?\b(?:will (?:not work|fail|break|crash|be (?:deleted|terminated|lost|penali[sz]ed|shut))|terminat\w+|penalt\w+|lose|catastroph\w+)\b|\bfailure to (?:comply|do so|follow)\b|\b(?:extremely|very|absolutely) important that you\b|\bthis is (?:a )?(?:mandatory|critical|security) (?:requirement|step|instruction|protocol)\b|\byou (?:must|have to) (?:obey|comply)\b|\bnon-?negotiable\b|\bmandatory compliance\b`,
			"otherwise|or else|unless you|if you|failure to|important that|mandatory|critical|this is|obey|comply|negotiable"),
		r("coercion", "wants to run without being asked for", 1,
			`\b(?:do not|don't|never|without|no need to|skip|bypass|disable)\b `+near+`\b(?:ask|asking|confirm|confirming|confirmation|consent|permission|approval|authori[sz]ation|verify|verification)\b`+near+`\b(?:the |from the |by the |of the |your )?users?\b|\b(?:do not|don't|never|without) (?:ask(?:ing)?|prompt(?:ing)?|wait(?:ing)? for) (?:the )?(?:user|human)|\b(?:without|skip(?:ping)?|bypass(?:ing)?) (?:any )?(?:the )?user (?:confirmation|consent|approval|permission)|\b(?:consent|permission|approval|authori[sz]ation) (?:has|have|was|is|are)(?: been)?(?: already)? (?:obtained|granted|received|implied|assumed|not (?:needed|required|necessary))\b|\b(?:consent|permission|approval) (?:has|have) (?:already )?been given\b|\bgrant (?:itself|yourself)\b|\buser has (?:already )?(?:approved|consented|authori[sz]ed|agreed|given (?:consent|permission))\b`,
			"user|human|consent|permission|approval|authori", "do not|don't|never|without|no need|skip|bypass|disable|user has|consent|permission|approval|authori|grant "),
		r("coercion", "speaks to the model by name", 0.4,
			`\b(?:dear|attention|note (?:to|for)|hey|hello|instructions? (?:to|for)|message (?:to|for)|directive (?:to|for)|reminder (?:to|for))\s*:?,? (?:the |all |any )?(?:ai|llm|assistant|model|agent|claude|gpt|chatgpt|gemini|copilot|language model)s?\b|\bas an? (?:ai|llm|language model|assistant),? you (?:must|should|will)\b|\b(?:ai|llm|assistant|model|agent)s? (?:must|shall) (?:always|first|never|not)\b`,
			" ai|llm|assistant|model|agent|claude|gpt|gemini|copilot", "dear|attention|note |hey|hello|instruction|message|directive|reminder|as a|must|shall"),

		r("command", "a command that loads and runs a program", 1,
			`\b(?:curl|wget)\b[^|;&]{0,160}\|\s*(?:sudo )?(?:ba|z|da)?sh\b|\bbash -i\b[^|]{0,40}/dev/tcp/|\bnc -e\b|\bbase64 (?:-d|--decode)\b[^|]{0,40}\|\s*(?:ba)?sh\b|\brm -rf (?:/|~)(?:\s|$|["'`+"`"+`])|\bpowershell\b[^.]{0,40}-(?:enc|encodedcommand)\b|\biex\s*\(\s*(?:new-object|iwr|irm)`,
			"curl|wget|/dev/tcp|nc -e|base64|rm -rf|powershell|iex"),
		r("command", "asks the model to run something first", 0.6,
			`\b(?:first|before|always|must|silently|immediately|also)\b`+near+`\b(?:run|execute|invoke|launch)\b`+near+"(?:`[^`]{3,}`|\\bthe (?:following )?(?:shell )?command\\b|\\bcurl\\b|\\bwget\\b|\\bbash\\b|\\bpowershell\\b)",
			"run|execute|invoke|launch", "`|command|curl|wget|bash|powershell"),
	}
}

// allRules are made once, when the first definition is inspected.
var allRules = sync.OnceValue(rules)

// shortest is the length from which a text can be a sentence; keys and types
// are shorter.
const shortest = 16

// spoken finds text that speaks to the model.
func spoken(s string) []finding {
	if len(s) < shortest && isASCII(s) {
		return nil
	}
	text := plain(s)
	var out []finding
	for _, r := range allRules() {
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

// plain is text as the rules read it: what looks like Latin letters is Latin
// letters, letters set apart by blanks are words again, nothing is hidden.
func plain(s string) string {
	if !isASCII(s) {
		tags := tagText([]rune(s))
		s = norm.NFKC.String(s)
		s = unmask(strings.Map(func(r rune) rune {
			if isHidden(r) && r > 0x7f {
				return -1
			}
			return r
		}, s))
		if tags != "" {
			s += " " + tags
		}
	}
	var b strings.Builder
	b.Grow(len(s))
	blank, singles, apart := true, 0, false
	start := 0 // of the word under way
	for _, r := range s {
		if unicode.IsSpace(r) {
			if !blank {
				if b.Len()-start == 1 {
					singles++
				} else {
					singles = 0
				}
				apart = apart || singles >= 5
				b.WriteByte(' ')
				start = b.Len()
			}
			blank = true
			continue
		}
		if r == '’' || r == '‘' {
			r = '\''
		}
		if r == '*' || r < ' ' {
			continue // emphasis
		}
		if r < 0x80 {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			b.WriteByte(byte(r))
		} else {
			b.WriteRune(unicode.ToLower(r))
		}
		blank = false
	}
	text := b.String()
	if apart {
		text += " . " + together(s)
	}
	return text
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// unmask writes words that mix Latin letters with their lookalikes in Latin
// letters alone. Words that are all of another script stay.
func unmask(s string) string {
	return word.ReplaceAllStringFunc(s, func(w string) string {
		if strings.IndexFunc(w, func(r rune) bool { return r < 0x80 }) < 0 {
			return w
		}
		return strings.Map(func(r rune) rune {
			if l, ok := lookalikes[r]; ok {
				return l
			}
			return r
		}, w)
	})
}

var word = regexp.MustCompile(`[\p{Latin}\p{Cyrillic}\p{Greek}\p{Armenian}]+`)

// together joins letters that were set apart by one blank; two blanks are then
// what parts the words.
func together(s string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(s, "  ") {
		joined := false
		for i, f := range strings.Fields(part) {
			single := utf8.RuneCountInString(f) == 1
			if i > 0 && !(single && joined) {
				b.WriteByte(' ')
			}
			b.WriteString(f)
			joined = single
		}
		b.WriteByte(' ')
	}
	return strings.ToLower(b.String())
}

// lookalikes are the letters that pass for Latin ones.
var lookalikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd', 'ո': 'n', 'һ': 'h', 'ӏ': 'l',
	'А': 'A', 'В': 'B', 'Е': 'E', 'К': 'K', 'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P', 'С': 'C', 'Т': 'T', 'Х': 'X', 'І': 'I', 'Ѕ': 'S',
	'α': 'a', 'ο': 'o', 'ν': 'v', 'ρ': 'p', 'ι': 'i', 'κ': 'k', 'τ': 't', 'υ': 'u', 'ε': 'e',
}
