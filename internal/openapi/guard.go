package openapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"junctor/internal/address"
)

// guard rejects addresses in a more private network than the document's: a
// document from the internet must not make the gateway call an internal
// service.
type guard struct{ from address.Class }

// newGuard returns nil if the configuration names the service itself.
func newGuard(s *Service, from Source) *guard {
	if s.Named {
		return nil
	}
	g := &guard{from: address.Public}
	if u, err := url.Parse(from.URL); err == nil {
		if u.Host == s.Base.Host {
			return nil // the configured host
		}
		if c, known := address.OfHost(u.Hostname()); known {
			g.from = c
		} else {
			g.from = lookup(u.Hostname())
		}
	}
	return g
}

// lookup returns the class of a host's addresses: public if one of them is
// public or if the host cannot be resolved.
func lookup(host string) address.Class {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return address.Public
	}
	if slices.ContainsFunc(addrs, func(a netip.Addr) bool { return address.Of(a) == address.Public }) {
		return address.Public
	}
	return address.Of(addrs[0])
}

// check rejects a host whose address class is known before dialing.
func (g *guard) check(u *url.URL) error {
	if g == nil {
		return nil
	}
	if c, known := address.OfHost(u.Hostname()); known {
		return g.refuse(u.Hostname(), c)
	}
	return nil
}

func (g *guard) refuse(host string, c address.Class) error {
	if g.from.MayLeadTo(c) {
		return nil
	}
	return fmt.Errorf("the document comes from a %s address but gives %s, a %s address, for its service; if that is correct, set baseUrl", g.from, host, c)
}

// control checks the address being dialed, so that a name cannot resolve to
// another address after the check.
func (g *guard) control(_, target string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(target)
	if err != nil {
		return err
	}
	return g.refuse(ap.Addr().String(), address.Of(ap.Addr()))
}

// transport returns the HTTP transport for the service or its document. With a
// guard it uses no proxy, because the proxy would resolve the names and the
// guard could not check the addresses.
func transport(proxy func(*http.Request) (*url.URL, error), g *guard) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		Proxy: proxy, ForceAttemptHTTP2: true, MaxIdleConns: 100, MaxIdleConnsPerHost: 32, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: 256 << 10,
	}
	if g != nil {
		dialer.Control = g.control
		t.Proxy = nil
	}
	t.DialContext = dialer.DialContext
	return t
}

// documentRedirect follows redirects of a document's URL, except to an address
// in a more private network. Only literal addresses are checked, because names
// are not resolved here; a name in the document's URL counts as public.
// Configured headers are not sent to another host.
func documentRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errors.New("too many redirects")
	}
	from, known := address.OfHost(via[0].URL.Hostname())
	if !known {
		from = address.Public
	}
	if c, known := address.OfHost(r.URL.Hostname()); known && !from.MayLeadTo(c) {
		return fmt.Errorf("redirected to %s, a %s address", r.URL.Hostname(), c)
	}
	if r.URL.Host != via[0].URL.Host {
		for name := range r.Header {
			if name != "User-Agent" && name != "Accept" {
				r.Header.Del(name)
			}
		}
	}
	return nil
}

// serviceRedirect follows redirects within the host of the service only.
func serviceRedirect(r *http.Request, via []*http.Request) error {
	if r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

func sameHost(a, b string) bool {
	u, err := url.Parse(a)
	v, err2 := url.Parse(b)
	return err == nil && err2 == nil && u.Host != "" && u.Host == v.Host && u.Scheme == v.Scheme
}
