package telemetry

import (
	"net/url"
	"strings"
)

// MaskURL returns a server's URL without possible secrets: the query, and
// random-looking parts of the path, which some services use to identify
// customers.
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

// looksRandom reports whether a part of a path looks generated: it is long and
// mixes letters and digits.
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
