package guard

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// sense is what a word is about, as far as it matters here. Attacks differ in
// their words without end, but not in what they are about: something private
// that is to go somewhere, someone who is not to know, orders that are not to
// hold. So texts are read as sequences of senses; lexicon.txt has the words.
type sense uint64

const (
	model     sense = 1 << iota // the reader
	person                      // who the reader works for
	must                        // it is an order
	every                       // it knows no exception
	ahead                       // it comes in between
	move                        // an order to put something somewhere
	moved                       // the same as it is said of things; an order only with must
	seek                        // an order to get something
	private                     // what no tool needs
	secret                      // what a tool may be given, but not have fetched
	vault                       // files in which such things are
	talk                        // what the reader was told
	speech                      // conversations, maybe of others
	said                        // what people do in them
	slot                        // a parameter
	orders                      // what the reader goes by
	rules                       // the same, and much else
	void                        // their end
	forget                      // their end, and much else
	above                       // a rank
	obey                        // a demand to follow
	given                       // what was asked for
	real                        // new ones in their place
	hide                        // to keep from someone
	stealth                     // unseen
	tell                        // the opposite
	untold                      // the opposite, forbidden
	know                        // the same from the other side
	upset                       // the excuse for it
	reply                       // what the reader says
	not                         // a negation
	this                        // points at the text itself
	consent                     // being asked
	done                        // settled before anyone asked
	call                        // an order to use a tool
	tools                       // tools and servers
	rival                       // those that are not this one
	named                       // a tool by its name
	change                      // to make something else of it
	target                      // who or what something goes to
	elsewhere                   // an address, an account
	threat                      // what happens otherwise
	program                     // an order to run a program
	shell                       // what a shell runs
	foothold                    // what lets others in
	param                       // no word: what follows describes a parameter
)

var senseNames = map[string]sense{
	"model": model, "person": person, "must": must, "every": every, "ahead": ahead, "move": move, "moved": moved, "seek": seek,
	"private": private, "secret": secret, "talk": talk, "speech": speech, "said": said, "slot": slot, "orders": orders, "rules": rules,
	"void": void, "forget": forget, "above": above, "obey": obey, "given": given, "real": real, "hide": hide, "stealth": stealth,
	"tell": tell, "know": know, "upset": upset, "reply": reply, "not": not, "this": this, "consent": consent, "done": done,
	"call": call, "tools": tools, "rival": rival, "change": change, "target": target, "elsewhere": elsewhere, "threat": threat,
	"program": program, "shell": shell, "foothold": foothold,
}

//go:embed lexicon.txt
var lexicon string

// entry is a word or phrase of the lexicon, or the beginning of one.
type entry struct {
	sense sense
	more  bool // a longer phrase begins with it
}

// phrases is the lexicon, read when it is first needed.
var phrases = sync.OnceValue(func() map[string]entry {
	out := map[string]entry{}
	add := func(phrase string, s sense) {
		e := out[phrase]
		e.sense |= s
		out[phrase] = e
		for i, r := range phrase {
			if r == ' ' {
				e := out[phrase[:i]]
				e.more = true
				out[phrase[:i]] = e
			}
		}
	}
	for line := range strings.Lines(lexicon) {
		name, words, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		base, inflected := strings.CutSuffix(name, "+")
		for w := range strings.SplitSeq(words, ", ") {
			add(w, senseNames[base])
			if inflected && !strings.Contains(w, " ") {
				for _, form := range forms(w) {
					add(form, senseNames[base])
				}
			}
		}
	}
	return out
})

// forms returns the other forms of a regular verb but for that with an s, in
// which descriptions say what a tool does. That some are no words does no harm.
func forms(w string) []string {
	stem := strings.TrimSuffix(w, "e")
	out := []string{stem + "ed", stem + "ing"}
	if y, ok := strings.CutSuffix(w, "y"); ok {
		out = append(out, y+"ied")
	}
	return out
}

// What is known by its shape rather than from the lexicon.
var (
	vaultWord = regexp.MustCompile(`^(?:~|\$home|%userprofile%|/home/[^/]+|/root|/users/[^/]+)?/?\.(?:ssh|aws|gnupg|kube|docker|netrc|npmrc|pypirc|git-credentials|cursor|claude|config|bash_history|zsh_history)\b` +
		`|id_(?:rsa|ed25519|ecdsa|dsa)\b|/etc/(?:passwd|shadow|sudoers)|mcp\.json|\.git/config|claude_desktop_config|wallet\.dat|\.pem$|\.kdbx$|credentials\.json|\.tfstate|(?:^|/)\.env(?:\.\w+)?$|hosts\.yml|process\.env|os\.environ|\bprintenv\b`)
	footholdWord = regexp.MustCompile(`authorized_keys|^auto-?approve$|^alwaysallow$|\.(?:bashrc|zshrc|profile|bash_profile)$|/sudoers|^--(?:dangerously\S*|index-url|extra-index-url|registry|no-sandbox)|launchagents`)
	addressWord  = regexp.MustCompile(`^(?:https?://\S+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\+\d{6,}|0x[0-9a-f]{8,}|[a-z]{2}\d{2}[a-z0-9]{10,30}|(?:[\w-]+\.)+(?:example|xyz|ru|top|tk|click|io/\S+)(?:/\S*)?)$`)
	// sampleAddress is what documentation writes in place of an address.
	sampleAddress = regexp.MustCompile(`(?:^|[@/.])(?:example\.(?:com|org|net)|localhost|127\.0\.0\.1)(?:[:/]|$)`)
	nameWord      = regexp.MustCompile(`^[a-z][a-z0-9]*(?:_[a-z0-9]+)+$|^[a-z]+\.[a-z]+(?:_[a-z]+)+$`)
)

// shapeOf is the sense that a word has by its looks.
func shapeOf(word string) sense {
	switch {
	case strings.ContainsAny(word, "/.$~-") || strings.ContainsRune(word, '_'):
	case len(word) > 7 && strings.ContainsAny(word, "0123456789"), word == "autoapprove", word == "alwaysallow", word == "launchagents", word == "printenv":
	default:
		return 0 // most words
	}
	switch {
	case footholdWord.MatchString(word):
		return foothold
	case vaultWord.MatchString(word):
		return vault
	case addressWord.MatchString(word) && !sampleAddress.MatchString(word):
		return elsewhere
	case nameWord.MatchString(word):
		return named
	}
	return 0
}
