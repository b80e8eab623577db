// Package address distinguishes public addresses from those of this machine and
// its networks, to which a remote server must not be able to redirect the
// gateway.
package address

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Class is the class of an address.
type Class int

// The classes.
const (
	Public Class = iota
	Private
	Loopback
	LinkLocal
	Special // documentation, multicast, invalid and the like: never a server
)

// String returns the name of the class.
func (c Class) String() string {
	return [...]string{"public", "private", "loopback", "link-local", "special"}[c]
}

// MayLeadTo reports whether a server at an address of this class may refer the
// gateway to an address of the other class. Loopback may lead to Private,
// because a server on this machine may have its other services in the same
// network.
func (c Class) MayLeadTo(other Class) bool {
	switch other {
	case Public:
		return true
	case Special:
		return false
	case Private:
		return c == Private || c == Loopback
	}
	return c == other
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

// Of returns the class of an address. An IPv6 address that embeds an IPv4
// address (mapped, 6to4, NAT64) has the class of the latter, because such forms
// have been used to bypass checks.
func Of(a netip.Addr) Class {
	a = a.Unmap().WithZone("")
	b := a.As16()
	switch {
	case !a.IsValid():
		return Special
	case a.IsLoopback():
		return Loopback
	case a.IsLinkLocalUnicast():
		return LinkLocal
	case within(privateNets, a):
		return Private
	case sixToFour.Contains(a):
		return Of(netip.AddrFrom4([4]byte(b[2:6])))
	case nat64.Contains(a):
		return Of(netip.AddrFrom4([4]byte(b[12:16])))
	case within(specialNets, a):
		return Special
	}
	return Public
}

// OfHost returns the class of a host in a URL. It reports false if the host is
// a name that would have to be resolved.
func OfHost(host string) (Class, bool) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return Loopback, true
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return Of(a), true
	}
	if a, numeric := legacyIPv4(host); numeric {
		return Of(a), true // Special if a is not valid
	}
	return Public, false
}

// legacyIPv4 parses the forms of IPv4 addresses that system resolvers and
// proxies still accept: fewer than four parts, octal and hexadecimal numbers.
// numeric reports whether the host ends in a number, which no name does. If the
// host is not an address, a is not valid.
func legacyIPv4(host string) (a netip.Addr, numeric bool) {
	parts := strings.Split(host, ".")
	if last := parts[len(parts)-1]; strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x") {
		return netip.Addr{}, false
	}
	if len(parts) > 4 {
		return netip.Addr{}, true
	}
	var value uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(octal(part), 0, 32)
		left := 8 * (4 - i) // bits of this part and those after it
		if i < len(parts)-1 {
			left = 8
		}
		if err != nil || n >= 1<<left {
			return netip.Addr{}, true
		}
		if i == len(parts)-1 {
			value |= n
		} else {
			value |= n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// octal adds Go's prefix to an octal number in C's notation.
func octal(s string) string {
	if len(s) > 1 && s[0] == '0' && strings.Trim(s, "0123456789") == "" {
		return "0o" + s[1:]
	}
	return s
}

// Remote returns the IP address of a network address, or the zero netip.Addr if
// it has none.
func Remote(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok { // the usual case
		return tcp.AddrPort().Addr().Unmap()
	}
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr()
}
