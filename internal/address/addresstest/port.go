// Package addresstest finds addresses for tests.
package addresstest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// UnusedPort returns a TCP port on which no program listens. It is below the
// range of ephemeral ports, so that no other program is likely to get it before
// the test uses it, or between two uses. UnusedPort does not listen on the port
// to check it, because a child process that is being started at that moment
// could inherit the listener and keep it open for a while.
func UnusedPort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10_000 + rand.IntN(20_000)
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return port
		}
		_ = c.Close()
	}
	t.Fatal("no port is unused")
	return 0
}
