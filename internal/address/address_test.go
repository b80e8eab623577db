package address

import (
	"net"
	"net/netip"
	"slices"
	"testing"
)

func TestClassify(t *testing.T) {
	for addr, want := range map[string]Class{
		"93.184.216.34": Public, "2606:2800:220:1::1": Public,
		"127.0.0.1": Loopback, "127.8.9.1": Loopback, "::1": Loopback, "::ffff:127.0.0.1": Loopback,
		"10.0.0.1": Private, "172.16.0.1": Private, "172.31.255.255": Private, "192.168.1.1": Private, "100.64.0.1": Private,
		"fd00::1": Private, "fec0::1": Private, "::ffff:10.0.0.1": Private,
		"169.254.169.254": LinkLocal, "fe80::1": LinkLocal, "fe80::1%eth0": LinkLocal, "::ffff:169.254.169.254": LinkLocal,
		"2002:7f00:0001::": Loopback, "2002:a9fe:a9fe::1": LinkLocal, "2002:0a00:0001::1": Private, "2002:5db8:d822::1": Public,
		"64:ff9b::7f00:1": Loopback, "64:ff9b::a9fe:a9fe": LinkLocal, "64:ff9b::c0a8:101": Private, "64:ff9b::5db8:d822": Public,
		"64:ff9b:1::1": Special, "::127.0.0.1": Special, "::": Special, "0.0.0.0": Special, "0.1.2.3": Special,
		"2001::1": Special, "2001:db8::1": Special, "224.0.0.1": Special, "255.255.255.255": Special, "ff02::1": Special, "192.0.2.1": Special,
		"198.18.0.1": Special, "203.0.113.9": Special, "100::1": Special,
	} {
		if got := Of(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is %s, want %s", addr, got, want)
		}
	}
	if Of(netip.Addr{}) != Special {
		t.Error("no address is one")
	}
	for host, want := range map[string]Class{"localhost": Loopback, "LOCALHOST.": Loopback, "a.localhost": Loopback, "127.0.0.1": Loopback, "::1": Loopback} {
		if got, ok := OfHost(host); !ok || got != want {
			t.Errorf("%s is %s, %v", host, got, ok)
		}
	}
	for host, want := range map[string]Class{
		"2130706433": Loopback, "0x7f000001": Loopback, "0X7F.1": Loopback, "0177.0.0.1": Loopback, "127.1": Loopback, "127.0.1": Loopback,
		"017700000001": Loopback, "2852039166": LinkLocal, "0xa9.0xfe.0xa9.0xfe": LinkLocal, "0251.0376.0251.0376": LinkLocal,
		"10.1": Private, "0": Special, "1.2.3.4.5": Special, "09.0.0.1": Special, "256.1.1.1": Special, "127.0.0.0x1g": Special, "a.1": Special,
		"93.184.55330": Public, "::ffff:7f00:1": Loopback, "0:0:0:0:0:ffff:a9fe:a9fe": LinkLocal,
	} {
		if got, ok := OfHost(host); !ok || got != want {
			t.Errorf("%s is %s, %v; want %s", host, got, ok, want)
		}
	}
	for _, host := range []string{"example.com", "1password.com", "x.0xyz.dev"} {
		if _, ok := OfHost(host); ok {
			t.Errorf("%s was judged without asking", host)
		}
	}
	if _, ok := OfHost("example.com"); ok {
		t.Error("a name was judged without asking")
	}
}

func TestMayLeadTo(t *testing.T) {
	for from, to := range map[Class][]Class{
		Public: {Public}, Private: {Public, Private}, Loopback: {Public, Private, Loopback}, LinkLocal: {Public, LinkLocal}, Special: {Public},
	} {
		for other := Public; other <= Special; other++ {
			if got := from.MayLeadTo(other); got != slices.Contains(to, other) {
				t.Errorf("%s may lead to %s: %v", from, other, got)
			}
		}
	}
}

func TestRemote(t *testing.T) {
	if got := Remote(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}); Of(got) != Private {
		t.Errorf("the other end is %s", got)
	}
	if got := Remote(&net.UnixAddr{Name: "x", Net: "unix"}); got.IsValid() {
		t.Errorf("a socket has the address %s", got)
	}
}
