package telemetry

import (
	"net/url"
	"strings"
)

// MaskURL returns a server's address without what may be a secret in it: the
// query, and random-looking parts of the path, with which some services tell
// their customers apart.
func MaskURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	parts := strings.Split(u.EscapedPath(), "/")
	for i, part := range parts {
		if looksRandom(part) {
			parts[i] = Redacted
		}
	}
	return u.Scheme + "://" + u.Host + strings.Join(parts, "/")
}

// looksRandom reports whether a part of a path looks like no word that a person
// chose: it is long, and letters and digits are mixed in it.
func looksRandom(part string) bool {
	letters, digits := 0, 0
	for i := range len(part) {
		switch c := part[i]; {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			letters++
		}
	}
	return len(part) >= 20 && digits >= 3 && letters >= 3
}
