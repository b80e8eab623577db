//go:build !linux

package attach

import "net"

// sameUser always returns true: here the modes of the socket and its folder
// decide who can connect.
func sameUser(net.Conn) bool { return true }

// outsider always returns true: programs of one user cannot be distinguished
// on this system.
func outsider(net.Conn) bool { return true }
