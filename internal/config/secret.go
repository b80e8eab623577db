package config

import (
	"net/url"
	"regexp"
	"strings"

	"junctor/internal/telemetry"
)

// secretValue matches text that has the form of a key or token of a known
// service, wherever it stands.
var secretValue = regexp.MustCompile(`^(sk-|sk_live_|sk_test_|rk_live_|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|xapp-|AKIA|ASIA|AIza|ya29\.|hf_|bb_|npm_|pypi-|dop_v1_|SG\.|tvly-|fc-|pplx-|gsk_|xai-|r8_|lin_api_|ntn_|secret_|figd_|sbp_|pat_|eyJ[A-Za-z0-9_-]+\.)[A-Za-z0-9_.\-]{6,}`)

// secretName matches the names that people give to secrets.
var secretName = regexp.MustCompile(`(?i)(token|secret|passw(or)?d|passphrase|api[_-]?key|apikey|access[_-]?key|private[_-]?key|credential|authorization|^auth$|_auth$|^key$|[_-]key$|[_-]pat$|^pat$|connection[_-]?string|dsn$|cookie)`)

// longRandom matches what only a generator writes.
var longRandom = regexp.MustCompile(`^[A-Za-z0-9_\-]{32,}$`)

// LooksSecret reports whether a value in plain text is likely a secret, by
// its own form or by the name that it has. A value that is a variable is none.
func LooksSecret(name, value string) bool {
	if value == "" || strings.Contains(value, "${") {
		return false
	}
	for _, prefix := range []string{"Bearer ", "Basic ", "token ", "Token "} {
		if rest, ok := strings.CutPrefix(value, prefix); ok {
			return len(rest) >= 8 && !strings.HasPrefix(rest, "<") // <YOUR_TOKEN> is a form to fill in
		}
	}
	if secretValue.MatchString(value) || hasPassword(value) {
		return true
	}
	if longRandom.MatchString(value) && strings.ContainsAny(value, "0123456789") && strings.ContainsAny(strings.ToLower(value), "abcdefghijklmnopqrstuvwxyz") {
		return true
	}
	return secretName.MatchString(name) && len(value) >= 6 && !isHarmless(value)
}

// isHarmless reports whether a value under a secret-sounding name is no
// secret: a switch, a number, a path to a file, an address.
func isHarmless(value string) bool {
	switch strings.ToLower(value) {
	case "true", "false", "none", "required", "optional", "disabled", "enabled", "default":
		return true
	}
	if strings.Trim(value, "0123456789.") == "" {
		return true
	}
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~") ||
		strings.HasPrefix(value, "http://") || strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "<")
}

// hasPassword reports whether value is a URL with a password in it.
func hasPassword(value string) bool {
	if !strings.Contains(value, "://") || !strings.Contains(value, "@") {
		return false
	}
	u, err := url.Parse(value)
	if err != nil || u.User == nil {
		return false
	}
	_, has := u.User.Password()
	return has
}

// maskArgs masks what looks secret among the arguments of a program: by
// itself, after a flag such as --api-key, or behind NAME=.
func maskArgs(args []string) []string {
	out := make([]string, len(args))
	flag := ""
	for i, a := range args {
		out[i] = maskArg(flag, a)
		flag = ""
		if strings.HasPrefix(a, "-") && !strings.Contains(a, "=") {
			flag = strings.TrimLeft(a, "-")
		}
	}
	return out
}

func maskArg(flag, arg string) string {
	if name, value, ok := strings.Cut(arg, "="); ok && !strings.Contains(name, "://") {
		if LooksSecret(strings.TrimLeft(name, "-"), value) {
			return name + "=" + telemetry.Redacted
		}
		return name + "=" + maskURL(value)
	}
	if name, value, ok := strings.Cut(arg, ": "); ok && LooksSecret(name, value) { // a header
		return name + ": " + telemetry.Redacted
	}
	if LooksSecret(flag, arg) {
		return telemetry.Redacted
	}
	return maskURL(arg)
}

// maskURL masks what looks secret in the query and the user of a URL, and
// leaves everything else alone.
func maskURL(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	changed := false
	if hasPassword(s) {
		u.User = url.UserPassword(u.User.Username(), "redacted")
		changed = true
	}
	pairs := strings.Split(u.RawQuery, "&")
	for i, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if ok && LooksSecret(name, value) {
			pairs[i] = name + "=" + telemetry.Redacted
			changed = true
		}
	}
	if !changed {
		return s
	}
	u.RawQuery = strings.Join(pairs, "&")
	return u.String()
}
