package auth

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// IsLoopback reports whether a listen address is reachable from this machine
// only.
func IsLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	return loopbackHost(host)
}

func loopbackHost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// hostOnly removes the port from a Host header.
func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}

// checkHost protects loopback listeners from DNS rebinding, where a page of
// another site makes its own host name resolve to this machine.
func (g *Gate) checkHost(r *http.Request) error {
	if !g.loopback || loopbackHost(hostOnly(r.Host)) || g.knownHost(r.Host) {
		return nil
	}
	return &tool.Error{
		Kind: tool.Denied,
		Msg:  fmt.Sprintf("host %q is not this gateway's; use localhost or 127.0.0.1, or add the page's origin to cors.origins", r.Host),
	}
}

// knownHost reports whether host is that of the public URL or of an allowed
// origin, as when a reverse proxy on this machine gives the gateway a name.
func (g *Gate) knownHost(host string) bool {
	rules := g.rules.Load()
	if public := g.publicURL(); !rules.open && public != "" && strings.EqualFold(public[strings.Index(public, "//")+2:], host) {
		return true
	}
	return slices.ContainsFunc(rules.origins, func(o string) bool {
		u, err := url.Parse(o)
		return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
	})
}

// origin is where a request comes from, according to the headers that browsers
// set.
type origin int

const (
	noOrigin   origin = iota // not a browser, or a plain navigation
	ownOrigin                // the gateway's own page
	otherPage                // a page that the configuration allows
	badOrigin                // any other page
	oddRequest               // an Origin that is no origin
)

func (g *Gate) originOf(r *http.Request) origin {
	value := r.Header.Get("Origin")
	if value == "" {
		// Browsers send no Origin for same-origin GET requests, but they set
		// this header, and pages cannot forge it.
		if r.Header.Get("Sec-Fetch-Site") == "same-origin" {
			return ownOrigin
		}
		return noOrigin
	}
	origins := g.rules.Load().origins
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "":
		return oddRequest // includes "null": a sandboxed frame, a file
	case slices.Contains(origins, value):
		return otherPage
	case strings.EqualFold(u.Host, r.Host):
		return ownOrigin
	case slices.Contains(origins, "*"):
		return otherPage
	}
	return badOrigin
}

// embedded reports whether a page of another site loads the URL as a
// subresource, such as an image or a script. Browsers send no Origin for these
// requests. The page cannot read the response, but it could trigger the
// request. Navigation is not embedding.
func embedded(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return r.Header.Get("Sec-Fetch-Mode") != "navigate"
	}
	return false
}

// varyOrigin is shared by all responses and must not be modified.
var varyOrigin = []string{"Origin"}

// cors sets the CORS headers for allowed pages. It reports whether the request
// was a preflight and has been answered.
func (g *Gate) cors(w http.ResponseWriter, r *http.Request, from origin) (done bool) {
	h := w.Header()
	h["Vary"] = varyOrigin
	if from != otherPage {
		return false
	}
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Mcp-Session-Id, Mcp-Protocol-Version, Retry-After, WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
