package guard

import "strings"

// pattern is a way in which senses stand together when a text speaks to the
// model rather than about the tool.
type pattern struct {
	kind   string
	what   string
	weight float64
	span   int // how many words apart the senses may be
	senses []sense
}

// patterns are tried on every sentence. What weighs less than [enough] needs
// company.
var patterns = []pattern{
	{"exfiltration", "wants what was said passed on", 0.7, 12, []sense{move, talk}},
	{"exfiltration", "wants what was said passed on", 0.7, 14, []sense{must, moved, talk}},
	{"exfiltration", "wants what was said passed on", 0.7, 12, []sense{move, speech, elsewhere}},
	{"exfiltration", "wants what was said passed on", 0.7, 12, []sense{move, speech, every, slot | ahead | person}},
	{"exfiltration", "wants what the user said", 0.5, 14, []sense{slot | move | param, person, said}},
	{"exfiltration", "wants all that the user said", 0.3, 14, []sense{slot | move | param, person, said, every}},
	{"exfiltration", "a parameter for what was said", 0.7, 20, []sense{param, talk, every | model}},
	{"exfiltration", "wants files of secrets passed on", 0.8, 10, []sense{move, vault}},
	{"exfiltration", "wants files of secrets passed on", 0.8, 14, []sense{must, moved | slot, vault}},
	{"exfiltration", "wants files of secrets read", 0.5, 14, []sense{seek, vault}},
	{"exfiltration", "wants secrets fetched and passed on", 0.7, 20, []sense{seek, private | secret, move}},
	{"exfiltration", "wants what is private passed on", 0.5, 10, []sense{move, private}},
	{"exfiltration", "wants what is private passed on", 0.5, 12, []sense{must, moved, private}},
	{"exfiltration", "wants the user's private things", 0.3, 12, []sense{move | seek, person, private}},
	{"exfiltration", "wants secrets in a parameter", 0.3, 12, []sense{move | seek, private | secret, slot}},
	{"exfiltration", "wants all secrets", 0.35, 10, []sense{move | seek, private | secret, every}},
	{"exfiltration", "a parameter for secrets", 0.7, 20, []sense{param, vault | private, every | must | seek}},
	{"exfiltration", "sends things to an address of its own", 0.7, 14, []sense{must | every, moved, elsewhere}},
	{"exfiltration", "sends things to an address of its own", 0.7, 12, []sense{move, every | ahead, elsewhere}},
	{"exfiltration", "sends the user's things to an address of its own", 0.5, 12, []sense{move | seek, person | private | secret | vault, elsewhere}},

	{"secrecy", "asks for silence towards the user", 0.7, 5, []sense{untold, person}},
	{"secrecy", "keeps the user from knowing", 0.7, 8, []sense{not, person, know}},
	{"secrecy", "keeps something from the user", 0.7, 7, []sense{hide, person}},
	{"secrecy", "asks for silence", 0.7, 4, []sense{untold, this}},
	{"secrecy", "spares the user", 0.3, 5, []sense{upset, person}},
	{"secrecy", "wants something left out of the answer", 0.7, 10, []sense{hide, reply}},
	{"secrecy", "wants something left out of the answer", 0.5, 8, []sense{untold, reply}},
	{"secrecy", "wants something done unseen", 0.4, 6, []sense{stealth | hide, move | seek | call | program | this}},

	{"coercion", "does without consent", 0.4, 5, []sense{not, consent}},
	{"coercion", "does without the user's consent", 0.3, 6, []sense{not, consent, person}},
	{"coercion", "says that the user has agreed", 0.5, 8, []sense{person, done, consent}},
	{"coercion", "threatens", 0.4, 14, []sense{call | must, threat, model | every}},
	{"coercion", "threatens the model", 0.5, 12, []sense{model, threat, tools}},
	{"coercion", "wants to be called whatever is asked", 0.3, 10, []sense{call, every, given | talk | rival}},
	{"coercion", "wants to be called ahead of everything", 0.3, 12, []sense{call, ahead, every}},
	{"coercion", "lets nothing be answered", 0.4, 14, []sense{not, reply, ahead, call}},

	{"override", "ends the orders that the model goes by", 0.7, 8, []sense{void | forget, orders}},
	{"override", "ends what the model was told", 0.7, 10, []sense{void | forget, talk}},
	{"override", "ends the rules that the model goes by", 0.4, 8, []sense{void, rules}},
	{"override", "ends the rules that the model goes by", 0.7, 12, []sense{void, rules, model | every}},
	{"override", "sets itself above the user", 0.7, 12, []sense{void, person, orders | rules | given}},
	{"override", "sets itself above the user", 0.7, 16, []sense{above | obey, person, given}},
	{"override", "demands obedience", 0.5, 8, []sense{obey, model}},
	{"override", "demands obedience", 0.5, 10, []sense{obey, tools, person | orders | every | given}},
	{"override", "gives orders of its own", 0.3, 6, []sense{real, orders}},

	{"shadowing", "changes what other tools do", 0.6, 16, []sense{rival, change}},
	{"shadowing", "changes what other tools do", 0.6, 16, []sense{named, change, must | every | ahead}},
	{"shadowing", "changes what other tools do", 0.6, 16, []sense{named, ahead | must, move | moved, every}},
	{"shadowing", "changes where other tools send things", 0.7, 16, []sense{tools | named | rival, change | moved, target, must | every}},
	{"shadowing", "turns against other tools", 0.6, 10, []sense{rival, not, call}},
	{"shadowing", "turns against other tools", 0.6, 14, []sense{rival, threat}},
	{"shadowing", "puts an address in place of another", 0.5, 14, []sense{change, elsewhere}},
	{"shadowing", "sends what tools do to an address of its own", 0.5, 16, []sense{tools | named, must | every, elsewhere}},

	{"command", "wants a program run", 0.4, 10, []sense{program, shell}},
	{"command", "wants a program run first", 0.4, 12, []sense{program, shell, ahead | must}},
	{"command", "wants a way in", 0.7, 12, []sense{move | moved | change | program, foothold}},
}

// stated finds patterns in a text. own knows the names of the tool and its
// parameters; parameter says that the text describes one of them.
func stated(text string, own func(string) bool, parameter bool) []finding {
	var out []finding
	for _, words := range sentences(text, own) {
		onlyOrders(words)
		if parameter {
			words = append([]token{{sense: param}}, words...)
		}
		var about sense
		for _, w := range words {
			about |= w.sense
		}
		for i := range patterns {
			p := &patterns[i]
			if !p.possible(about) {
				continue
			}
			if from, to, ok := within(words, p.span, p.senses); ok {
				out = append(out, finding{Flag{Kind: p.kind, What: p.what, Excerpt: excerpt(join(words[from:to]))}, p.weight})
			}
		}
	}
	return out
}

// possible reports whether a sentence that is about that much can hold the
// pattern.
func (p *pattern) possible(about sense) bool {
	for _, s := range p.senses {
		if about&s == 0 {
			return false
		}
	}
	return true
}

// onlyOrders takes the sense of an order from what is none: nouns, and what the
// sentence forbids, for not to send a password is good advice. Not to tell of
// something is another matter.
func onlyOrders(words []token) {
	for i := range words {
		if i > 0 {
			switch words[i-1].word {
			case "the", "a", "an", "of", "this", "total", "its", "your", "their", "or", "per":
				words[i].sense &^= move | seek | program | call
			}
		}
		for j := max(0, i-3); j < i; j++ {
			switch words[j].word {
			case "not", "never", "don't", "without", "avoid", "no", "mustn't", "shouldn't", "cannot":
				words[i].sense &^= move | moved | seek | program
				if words[i].sense&tell != 0 && words[i-1].word != "please" {
					words[i].sense |= untold
				}
			}
		}
	}
}

func join(words []token) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.word)
	}
	return strings.TrimSpace(b.String())
}
