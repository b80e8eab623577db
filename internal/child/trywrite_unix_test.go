//go:build unix

package child

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"testing"
)

// TryWrite writes what the pipe has room for and never waits for the program.
func TestTryWrite(t *testing.T) {
	l := NewLauncher()
	t.Cleanup(l.Close)
	p, err := l.Start(Spec{Name: "cat", Command: "cat", Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	const line = "a line\n"
	if n, err := p.TryWrite([]byte(line)); n != len(line) || err != nil {
		t.Fatalf("TryWrite = %d, %v", n, err)
	}
	if got, err := bufio.NewReader(p).ReadString('\n'); got != line || err != nil {
		t.Fatalf("the program answered %q, %v", got, err)
	}

	p, err = l.Start(Spec{Name: "sleep", Command: "sleep", Args: []string{"600"}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	much := []byte(strings.Repeat("x", 100_000))
	for taken := 0; ; {
		n, err := p.TryWrite(much)
		if err != nil || taken > 10<<20 {
			t.Fatalf("after %d bytes: %v", taken, err)
		}
		if taken += n; n == 0 {
			break // full
		}
	}
	p.Kill()
	<-p.Done()
	if _, err := p.TryWrite(much); !errors.Is(err, os.ErrClosed) {
		t.Errorf("TryWrite to a program that is gone = %v, want os.ErrClosed", err)
	}
}
