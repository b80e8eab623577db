//go:build unix

package child

import (
	"os"
	"slices"
	"testing"
	"time"
)

// A descendant that escaped has the pipe open, and the last output of the
// program has not been read yet when the read deadline expires.
func TestPipeIsReadAfterItsDeadline(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	first, goOn := make(chan struct{}), make(chan struct{})
	tl := newTail(func(line string) {
		if line == "first" {
			close(first)
			<-goOn
		}
	})
	read := make(chan struct{})
	go func() {
		defer close(read)
		tl.readPipe(r)
	}()
	for _, line := range []string{"first\n", "last\n"} {
		if _, err := w.WriteString(line); err != nil {
			t.Fatal(err)
		}
		<-first
	}
	if err := r.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	<-read
	if got, want := tl.lines(), []string{"first", "last"}; !slices.Equal(got, want) {
		t.Errorf("lines = %q, want %q", got, want)
	}
}
