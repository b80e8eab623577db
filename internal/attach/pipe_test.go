package attach

import (
	"io"
	"testing"
)

// The directions of a pipe are closed separately, so that responses arrive
// after the last request.
func TestPipeDirectionsEndSeparately(t *testing.T) {
	near, far := Pipe()
	got := make(chan string, 1)
	go func() {
		b, err := io.ReadAll(far)
		if err != nil {
			t.Error(err)
		}
		got <- string(b)
		_, _ = io.WriteString(far, "answer")
		_ = far.Close()
	}()
	if _, err := io.WriteString(near, "request"); err != nil {
		t.Fatal(err)
	}
	if err := near.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "request" {
		t.Errorf("far read %q", s)
	}
	if b, err := io.ReadAll(near); err != nil || string(b) != "answer" {
		t.Errorf("near read %q, %v", b, err)
	}
	if _, err := far.Write([]byte("x")); err == nil {
		t.Error("a closed end can be written to")
	}
}
