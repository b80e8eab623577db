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

// guard refuses addresses in a more private network than that of the document:
// a document from the internet must not make the gateway call an internal
// service.
type guard struct{ from address.Class }

// newGuard returns nil where the configuration names the service itself.
func newGuard(s *Service, from Source) *guard {
	if s.Named {
		return nil
	}
	g := &guard{from: address.Public}
	if u, err := url.Parse(from.URL); err == nil {
		if u.Host == s.Base.Host {
			return nil // the address that the configuration names
		}
		if c, known := address.OfHost(u.Hostname()); known {
			g.from = c
		} else {
			g.from = lookup(u.Hostname())
		}
	}
	return g
}

// lookup is the class of a host's addresses: public if one of them is, or if
// it cannot be found out.
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

// check refuses an address that can be judged before it is dialled.
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
	return fmt.Errorf("the document comes from a %s address and says that its service is at %s, a %s one; if that is right, set baseUrl", g.from, host, c)
}

// control checks the address that is dialled, so that a name cannot resolve to
// another one after the check.
func (g *guard) control(_, target string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(target)
	if err != nil {
		return err
	}
	return g.refuse(ap.Addr().String(), address.Of(ap.Addr()))
}

// transport is the way to the service or to its document. Under a guard no
// proxy is used for names that it could resolve to anything: the guard could
// not see the address.
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

// documentRedirect follows redirects of a document's address to public
// addresses only by name; what it may lead to is judged by its own address.
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

// serviceRedirect follows redirects within the host of the service.
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
