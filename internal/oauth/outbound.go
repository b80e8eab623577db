package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"junctor/internal/address"
	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// Limits of requests to authorization servers.
const (
	requestTimeout = 10 * time.Second
	maxResponse    = 1 << 20
	maxRedirects   = 3
)

// addressPolicy defines which addresses may be requested on behalf of an
// upstream.
type addressPolicy struct {
	private, loopback, linkLocal bool
	plain                        bool // without TLS
}

// allow permits a class of addresses. A server on this machine may have its
// authorization server on the local network.
func (r *addressPolicy) allow(c address.Class) {
	switch c {
	case address.Private:
		r.private = true
	case address.Loopback:
		r.loopback, r.private = true, true
	case address.LinkLocal:
		r.linkLocal = true
	}
}

func (r addressPolicy) allows(c address.Class) bool {
	switch c {
	case address.Public:
		return true
	case address.Private:
		return r.private
	case address.Loopback:
		return r.loopback
	case address.LinkLocal:
		return r.linkLocal
	}
	return false
}

// errForbidden is the error for an address that the policy of an upstream
// forbids.
type errForbidden struct {
	what string
}

func (e *errForbidden) Error() string { return e.what }

func (r addressPolicy) check(a netip.Addr) error {
	if c := address.Of(a); !r.allows(c) {
		return &errForbidden{fmt.Sprintf("%s is a %s address, and the server is not", a, c)}
	}
	return nil
}

// checkURL returns an error for a URL that is not http or https, that would
// send secrets without TLS, or whose address is forbidden.
func (r addressPolicy) checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil:
		return &errForbidden{fmt.Sprintf("%q must be an http or https URL with a host and without a user name", tool.Shorten(u.Redacted(), 200))}
	case u.Scheme == "http" && !r.plain:
		return &errForbidden{fmt.Sprintf("%s does not use TLS", u.Host)}
	}
	if c, ok := address.OfHost(u.Hostname()); ok && !r.allows(c) {
		return &errForbidden{fmt.Sprintf("%s is a %s address, and the server is not", u.Hostname(), c)}
	}
	return nil
}

// outbound sends requests to addresses named by upstreams.
type outbound struct {
	proxy func(*http.Request) (*url.URL, error)
	agent string

	dial    func(ctx context.Context, network, addr string) (net.Conn, error) // nil for the usual; tests replace it
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

func newOutbound(proxy func(*http.Request) (*url.URL, error), version string) *outbound {
	return &outbound{
		proxy: proxy, agent: "junctor/" + version,
		resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
	}
}

// client returns an HTTP client that enforces r. Addresses are checked when
// dialing, so that a name cannot resolve to another address after the check.
// Keep-alives are disabled, because these requests are rare.
func (o *outbound) client(r addressPolicy) *http.Client {
	dialer := &net.Dialer{Timeout: requestTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return r.check(ap.Addr())
	}}
	direct := mcpclient.NewRoundTripper(nil)
	direct.DisableKeepAlives, direct.DialContext = true, dialer.DialContext
	if o.dial != nil {
		direct.DialContext = o.dial
	}
	return &http.Client{
		Transport: guarded{o: o, reach: r, direct: direct},
		Timeout:   requestTimeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			switch {
			case via[0].Method != http.MethodGet:
				return http.ErrUseLastResponse // a form with secrets must not follow redirects
			case len(via) > maxRedirects:
				return errors.New("too many redirects")
			}
			return nil
		},
	}
}

// guarded checks every hop of a request, including redirects.
type guarded struct {
	o      *outbound
	reach  addressPolicy
	direct *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.reach.checkURL(req.URL); err != nil {
		return nil, err
	}
	if g.o.proxy == nil {
		return g.direct.RoundTrip(req)
	}
	through, err := g.o.proxy(req)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if through == nil {
		return g.direct.RoundTrip(req)
	}
	// The proxy resolves the name and dials. If this machine can resolve it
	// too, the addresses are checked here; otherwise only the proxy can
	// restrict them.
	if addrs, err := g.o.resolve(req.Context(), req.URL.Hostname()); err == nil {
		for _, a := range addrs {
			if err := g.reach.check(a); err != nil {
				return nil, err
			}
		}
	}
	t := mcpclient.NewRoundTripper(http.ProxyURL(through))
	t.DisableKeepAlives = true
	return t.RoundTrip(req)
}

// answer is the response of an authorization server.
type answer struct {
	status int
	kind   string // media type
	body   []byte
	nonce  string // for the next proof of a bound token
}

// ask sends a request and reads the response up to a limit.
func (o *outbound) ask(ctx context.Context, r addressPolicy, method, target string, header http.Header, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return answer{}, &errForbidden{"it is not a valid URL"}
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", o.agent)
	resp, err := o.client(r).Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return answer{}, err
	}
	if len(data) > maxResponse {
		return answer{}, fmt.Errorf("%s answered with more than %d bytes", req.URL.Host, maxResponse)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return answer{status: resp.StatusCode, kind: kind, body: data, nonce: resp.Header.Get("DPoP-Nonce")}, nil
}

// FetchPublic reads a document at an untrusted URL: over https, from public
// addresses only, without redirects, and up to limit bytes.
func (s *Service) FetchPublic(ctx context.Context, target string, limit int64) ([]byte, error) {
	return s.out.fetch(ctx, addressPolicy{}, target, limit)
}

// fetch reads a document without following redirects.
func (o *outbound) fetch(ctx context.Context, r addressPolicy, target string, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, &errForbidden{"it is not a valid URL"}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", o.agent)
	client := o.client(r)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered HTTP %d", req.URL.Host, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s answered with more than %d bytes", req.URL.Host, limit)
	}
	return data, err
}

// errNoDocument means that a document does not exist at a location.
var errNoDocument = errors.New("no such document")

// get reads a JSON document.
func (o *outbound) get(ctx context.Context, r addressPolicy, target string, into any) error {
	a, err := o.ask(ctx, r, http.MethodGet, target, nil, nil)
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", target, err)
	case a.status >= 400 && a.status < 500:
		return errNoDocument
	case a.status != http.StatusOK:
		return fmt.Errorf("read %s: HTTP %d", target, a.status)
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		if a.kind == "text/html" { // some sites return an HTML page for every path
			return errNoDocument
		}
		return fmt.Errorf("read %s: not the expected JSON: %w", target, err)
	}
	return nil
}
