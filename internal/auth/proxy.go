package auth

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// parseProxies parses auth.trustedProxies: CIDRs or single addresses.
func parseProxies(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, aerr := netip.ParseAddr(text)
			if aerr != nil {
				return nil, fmt.Errorf("%q is neither an IP address nor a CIDR range", text)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// forwardingHeader returns the name of a header that shows that a proxy
// forwarded the request, or "".
func forwardingHeader(h http.Header) string {
	for name := range h {
		switch name {
		case "Forwarded", "Via", "X-Real-Ip", "X-Forwarded":
			return name
		}
		if strings.HasPrefix(name, "X-Forwarded-") {
			return name
		}
	}
	return ""
}

func dropForwarding(h http.Header) {
	for name := forwardingHeader(h); name != ""; name = forwardingHeader(h) {
		h.Del(name)
	}
}

// applyForwarding processes the forwarding headers of a request. Headers of a
// trusted proxy set the host, scheme and address of the client; the request no
// longer counts as local, and applyForwarding returns true. From any other
// peer, an open loopback listener rejects them, because it admits callers by
// address, and other listeners drop them.
func (g *Gate) applyForwarding(r *http.Request) (forwarded bool, err error) {
	name := forwardingHeader(r.Header)
	if name == "" {
		return false, nil
	}
	rules := g.rules.Load()
	peer := peerOf(r)
	if !trusted(rules.proxies, peer) {
		if rules.open {
			return false, &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf(
				"the request was forwarded by a proxy (it has the header %s), and this listener requires no authentication; "+
					`set auth.loopback to "key", and auth.trustedProxies to the proxy's address (%s) if its X-Forwarded headers are to be trusted`, name, peer)}
		}
		dropForwarding(r.Header)
		return false, nil
	}
	if host := lastOf(r.Header, "X-Forwarded-Host"); host != "" {
		r.Host = host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) { // the client is the last address that is not a trusted proxy
		addr, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		r.RemoteAddr = net.JoinHostPort(addr.Unmap().String(), "0")
		if !trusted(rules.proxies, addr.Unmap()) {
			break
		}
	}
	return true, nil
}

// lastOf returns the value that the nearest proxy set.
func lastOf(h http.Header, name string) string {
	all := strings.Split(strings.Join(h.Values(name), ","), ",")
	return strings.TrimSpace(all[len(all)-1])
}

func peerOf(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(host) // the zero Addr is in no prefix
	return addr.Unmap().WithZone("")
}

func trusted(proxies []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// secure reports whether the client's connection is encrypted. It can rely on
// X-Forwarded-Proto because applyForwarding drops the header unless a trusted
// proxy set it.
func secure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(lastOf(r.Header, "X-Forwarded-Proto"), "https")
}
