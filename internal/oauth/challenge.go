package oauth

import (
	"slices"
	"strings"
)

// challenge is the Bearer challenge in a WWW-Authenticate header.
type challenge struct {
	metadata string   // URL of the protected resource metadata
	scopes   []string // scopes that the request needs
	err      string   // why the token was refused
	bound    bool     // tokens must be bound to a key (DPoP)
}

// maxScopes bounds the scopes that are accepted from servers.
const maxScopes = 100

// parseChallenge parses the first Bearer challenge of WWW-Authenticate headers.
// Invalid parts are ignored, because the login may still work.
func parseChallenge(headers []string) challenge {
	for _, h := range headers {
		for rest := h; rest != ""; {
			var scheme string
			var params map[string]string
			scheme, params, rest = nextChallenge(rest)
			if strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "DPoP") {
				return challenge{metadata: params["resource_metadata"], scopes: scopesOf(params["scope"]), err: params["error"], bound: strings.EqualFold(scheme, schemeDPoP)}
			}
		}
	}
	return challenge{}
}

// nextChallenge splits one challenge off a header: a scheme and its parameters.
// A parameter is distinguished from the next scheme by its equals sign.
func nextChallenge(s string) (scheme string, params map[string]string, rest string) {
	params = map[string]string{}
	s = strings.TrimLeft(s, " \t,")
	scheme, s = cutToken(s)
	if scheme == "" {
		return "", params, ""
	}
	for {
		s = strings.TrimLeft(s, " \t,")
		name, after := cutToken(s)
		after = strings.TrimLeft(after, " \t")
		if name == "" || !strings.HasPrefix(after, "=") {
			if name == "" && s != "" {
				return scheme, params, "" // malformed header
			}
			return scheme, params, s
		}
		var value string
		value, s = cutValue(strings.TrimLeft(after[1:], " \t"))
		if name = strings.ToLower(name); params[name] == "" {
			params[name] = value
		}
	}
}

func cutToken(s string) (token, rest string) {
	i := 0
	for i < len(s) && s[i] > ' ' && s[i] < 0x7f && strings.IndexByte(`()<>@,;:\"/[]?={}`, s[i]) < 0 {
		i++
	}
	return s[:i], s[i:]
}

func cutValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, " \t,")
		if i < 0 {
			return s, ""
		}
		return s[:i], s[i:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == '"':
			return b.String(), s[i+1:]
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}

// scopesOf splits a scope parameter and drops invalid scopes.
func scopesOf(s string) []string { return cleanScopes(strings.Fields(s)) }

func cleanScopes(list []string) []string {
	var out []string
	for _, scope := range list {
		if len(out) < maxScopes && validScope(scope) {
			out = union(out, []string{scope})
		}
	}
	return out
}

func validScope(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\' {
			return false
		}
	}
	return s != "" && len(s) <= 256
}

// union returns a and the elements of b that a does not contain.
func union(a, b []string) []string {
	out := a[:len(a):len(a)]
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// covers reports whether list contains all of wanted.
func covers(list, wanted []string) bool {
	for _, s := range wanted {
		if !slices.Contains(list, s) {
			return false
		}
	}
	return true
}
