package webui

import (
	_ "embed"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// AppFrame is the path of the document in which the page shows MCP Apps.
const AppFrame = "/app-frame"

//go:embed appframe.html
var appFrame []byte

// serveAppFrame serves the document that loads an app. Its policy, which the
// app inherits, consists of the origins that the app declares and that the page
// passes in the query: connect, resource, frame and base. The document always
// has an opaque origin, and only the page can embed it.
func serveAppFrame(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", appPolicy(r.URL.Query(), r.Host))
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("X-DNS-Prefetch-Control", "off")
	head.Set("Cache-Control", "no-cache")
	head.Set("Content-Type", "text/html; charset=utf-8")
	if r.Method == http.MethodGet {
		_, _ = w.Write(appFrame) // an error means that the client has disconnected
	}
}

// appPolicy returns the Content-Security-Policy of an app. An app may run its
// inline scripts and load what its server declared. 'self' is nowhere in the
// policy, so the gateway is not included.
func appPolicy(q url.Values, gateway string) string {
	resources := sources(q["resource"], gateway)
	from := func(declared string, more ...string) string {
		list := strings.TrimSpace(strings.Join(more, " ") + " " + declared)
		if list == "" {
			return "'none'"
		}
		return list
	}
	return strings.Join([]string{
		"sandbox allow-scripts allow-forms",
		"default-src 'none'",
		"script-src " + from(resources, "'unsafe-inline'", "blob:"),
		"style-src " + from(resources, "'unsafe-inline'"),
		"img-src " + from(resources, "data:", "blob:"),
		"font-src " + from(resources, "data:"),
		"media-src " + from(resources, "data:", "blob:"),
		"worker-src blob:",
		"connect-src " + from(sources(q["connect"], gateway)),
		"frame-src " + from(sources(q["frame"], gateway)),
		"base-uri " + from(sources(q["base"], gateway)),
		"form-action 'none'",
		"object-src 'none'",
		"frame-ancestors 'self'",
	}, "; ")
}

// source is an origin in a declaration, such as https://*.example.com:8443.
var source = regexp.MustCompile(`^(?:(?:https?|wss?)://)?((?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*(?::[0-9]{1,5})?)(?:/[A-Za-z0-9._~/-]*)?$`)

// maxSources bounds the entries that are used of one list of a declaration.
const maxSources = 32

// sources returns the valid entries of a list, except for the host and port of
// the gateway. Anything but an origin, such as a keyword or a second directive,
// is dropped.
func sources(declared []string, gateway string) string {
	var kept []string
	for _, s := range declared[:min(len(declared), maxSources)] {
		m := source.FindStringSubmatch(s)
		if m != nil && len(s) <= 256 && !strings.EqualFold(m[1], gateway) {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, " ")
}
