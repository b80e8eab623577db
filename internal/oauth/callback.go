package oauth

import (
	"net"
	"net/netip"
	"net/url"
)

// CallbackURL returns the redirect URI of a gateway that listens at listen:
// under its public address, if it has one, else at its listener.
func CallbackURL(public, scheme, listen string) string {
	if u, err := url.Parse(public); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
		return u.Scheme + "://" + u.Host + CallbackPath
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return ""
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsUnspecified() {
		host = "localhost" // a browser on this machine or behind a forwarded port
	}
	return scheme + "://" + net.JoinHostPort(host, port) + CallbackPath
}
