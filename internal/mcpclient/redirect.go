package mcpclient

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"junctor/internal/address"
	"junctor/internal/http1"
	"junctor/internal/tool"
)

// redirectGuards provide the transports for redirected requests. They check
// addresses when they are dialled, so that a host name cannot resolve to
// another address after the check.
type redirectGuards struct {
	mu       sync.Mutex
	byClass  map[address.Class]*http.Transport // of the server that redirects
	resolver *net.Resolver                     // nil for the default one; tests replace it
}

// follow sends one request and follows its redirects. A redirect to another
// origin gets neither credentials nor configured headers. One that would change
// the method, or leads from https to http, is not followed. A server must not
// redirect into this machine or its networks unless it is in them itself, so
// that it cannot reach through the gateway what it cannot reach directly.
func (e *httpEndpoint) follow(ctx context.Context, method string, to *url.URL, header func(http.Header), body []byte, refused *HTTPError) (*http.Response, error) {
	rt := e.rt
	for range maxRedirects {
		req, err := e.request(ctx, method, to, header, body, refused)
		if err != nil {
			return nil, err
		}
		resp, reached, err := roundTrip(rt, req)
		if err != nil {
			return nil, unreachable(err)
		}
		switch resp.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			return resp, nil
		}
		next, err := to.Parse(resp.Header.Get("Location"))
		if err != nil || resp.Header.Get("Location") == "" || next.Scheme != "http" && next.Scheme != "https" ||
			to.Scheme == "https" && next.Scheme == "http" {
			return resp, nil // it becomes an HTTPError
		}
		readErrorBody(resp)
		if !sameOrigin(to, next) {
			if rt, err = e.guarded(ctx, e.classOf(ctx, to, reached), next); err != nil {
				return nil, err
			}
		}
		to = next
	}
	return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server redirects in a loop; check its url"}
}

// roundTrip sends one request and returns the response and the remote address
// of the connection.
func roundTrip(rt http.RoundTripper, req *http.Request) (*http.Response, netip.Addr, error) {
	if own, ok := rt.(*http1.Transport); ok && own.Supports(req) {
		resp, remote, err := own.Do(req)
		if err != nil {
			return nil, netip.Addr{}, err
		}
		return resp, address.Remote(remote), nil
	}
	var reached netip.Addr
	traced := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { reached = address.Remote(info.Conn.RemoteAddr()) },
	})
	resp, err := rt.RoundTrip(req.WithContext(traced))
	return resp, reached, err
}

// standardTransport returns the http.Transport behind a round tripper, if there
// is one.
func standardTransport(rt http.RoundTripper) (*http.Transport, bool) {
	if own, ok := rt.(*http1.Transport); ok {
		return own.Base(), true
	}
	t, ok := rt.(*http.Transport)
	return t, ok
}

// classOf returns the address class of a server: that of the connection's
// remote address, or, if that is a proxy's, the lowest class of the addresses
// that the host resolves to.
func (e *httpEndpoint) classOf(ctx context.Context, u *url.URL, reached netip.Addr) address.Class {
	if reached.IsValid() && !e.proxied(u) {
		return address.Of(reached)
	}
	return slices.Min(e.guards.classes(ctx, u.Hostname()))
}

// proxied reports whether a proxy dials in place of this program.
func (e *httpEndpoint) proxied(u *url.URL) bool {
	t, ok := standardTransport(e.rt)
	if !ok {
		return true // unknown: its dialled addresses cannot be checked
	}
	if t.Proxy == nil {
		return false
	}
	through, err := t.Proxy(&http.Request{URL: u})
	return err != nil || through != nil
}

// guarded returns the transport for a redirect of a server of the class from.
// If a proxy dials, only the addresses that this machine resolves can be
// checked.
func (e *httpEndpoint) guarded(ctx context.Context, from address.Class, to *url.URL) (http.RoundTripper, error) {
	proxied := e.proxied(to)
	if class, ok := address.OfHost(to.Hostname()); ok {
		if err := checkRedirect(from, class, to.Host); err != nil {
			return nil, err
		}
	} else if proxied {
		if err := checkRedirect(from, slices.Max(e.guards.classes(ctx, to.Hostname())), to.Host); err != nil {
			return nil, err
		}
	}
	if proxied {
		return e.rt, nil
	}
	base, _ := standardTransport(e.rt) // there is one, or it counts as proxied
	return e.guards.transport(from, base), nil
}

// transport returns a transport that connects only to addresses that a server
// of the class from may redirect to.
func (g *redirectGuards) transport(from address.Class, base *http.Transport) *http.Transport {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.byClass[from]; t != nil {
		return t
	}
	if g.byClass == nil {
		g.byClass = map[address.Class]*http.Transport{}
	}
	dialer := &net.Dialer{Timeout: 30 * time.Second, Resolver: g.resolver, Control: func(_, dialled string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(dialled)
		if err != nil {
			return err
		}
		return checkRedirect(from, address.Of(ap.Addr()), dialled)
	}}
	t := base.Clone()
	t.Proxy, t.DialContext, t.DialTLSContext = nil, dialer.DialContext, nil
	g.byClass[from] = t
	return t
}

// checkRedirect returns an error for a redirect to a class of addresses that a
// server of the class from must not redirect to.
func checkRedirect(from, to address.Class, host string) error {
	if from.MayLeadTo(to) {
		return nil
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf(
		"the server redirects to %s, which is a %s address; such a redirect is not followed. Set url to the new address if it is intended", host, to)}
}

// classes returns the address classes of a host. It is public if the host
// cannot be resolved here, but perhaps by a proxy.
func (g *redirectGuards) classes(ctx context.Context, host string) []address.Class {
	if c, ok := address.OfHost(host); ok {
		return []address.Class{c}
	}
	resolver := net.DefaultResolver
	if g.resolver != nil {
		resolver = g.resolver
	}
	found, _ := resolver.LookupNetIP(ctx, "ip", host)
	all := make([]address.Class, 0, len(found))
	for _, a := range found {
		all = append(all, address.Of(a))
	}
	if len(all) == 0 {
		return []address.Class{address.Public}
	}
	return all
}
