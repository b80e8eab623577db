package oauth

import (
	"net"
	"net/netip"
	"strings"
)

// class is what an address is good for.
type class int

const (
	public class = iota
	private
	loopback
	linkLocal
	special // documentation, multicast, translation to nowhere: never a server
)

func (c class) String() string {
	return [...]string{"public", "private", "loopback", "link-local", "special"}[c]
}

var (
	privateNets = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10")
	specialNets = prefixes("0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"::/128", "::/96", "100::/64", "64:ff9b:1::/48", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "ff00::/8")
	sixToFour = netip.MustParsePrefix("2002::/16")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

func within(nets []netip.Prefix, a netip.Addr) bool {
	for _, p := range nets {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// classify says what an address is. An IPv6 address that only carries an IPv4
// one (mapped, 6to4, NAT64) is what that is: such forms have been used to
// reach machines that their plain form was kept from.
func classify(a netip.Addr) class {
	a = a.Unmap().WithZone("")
	b := a.As16()
	switch {
	case !a.IsValid():
		return special
	case a.IsLoopback():
		return loopback
	case a.IsLinkLocalUnicast():
		return linkLocal
	case within(privateNets, a):
		return private
	case sixToFour.Contains(a):
		return classify(netip.AddrFrom4([4]byte(b[2:6])))
	case nat64.Contains(a):
		return classify(netip.AddrFrom4([4]byte(b[12:16])))
	case within(specialNets, a):
		return special
	}
	return public
}

// classifyHost says what a host in a URL is, where that can be said without
// asking the network.
func classifyHost(host string) (class, bool) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return loopback, true
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return classify(a), true
	}
	return public, false
}

// addrOf returns the address of a connection's other end.
func addrOf(a net.Addr) netip.Addr {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr()
}
