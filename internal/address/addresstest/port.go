// Package addresstest finds addresses for tests.
package addresstest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// UnusedPort returns a TCP port that nobody listens on. It is below the range
// from which operating systems give ports away, so that no other program gets
// it by chance before the test uses it, or between two uses. It is not tried
// out by listening: a program that is being started at that moment would keep
// the listener open for a while.
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
