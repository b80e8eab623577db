//go:build !linux

package attach

import "net"

// sameUser leaves it to the mode of the socket and of its folder who can
// connect.
func sameUser(net.Conn) bool { return true }

// outsider cannot distinguish programs of one user on this system.
func outsider(net.Conn) bool { return true }
