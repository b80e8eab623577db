package mcp

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestReadWhole(t *testing.T) {
	for _, size := range []int{0, 1, 511, 8 << 10, 32 << 10, 32<<10 + 1, 300_000, 3 << 20} {
		want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		for name, length := range map[string]int64{
			"announced": int64(size), "chunked": -1, "announced too short": int64(size / 2), "announced too long": int64(size) + 100,
			"announced beyond all bounds": 1 << 40,
		} {
			for kind, wrap := range map[string]func(io.Reader) io.Reader{
				"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "end with data": iotest.DataErrReader,
			} {
				got, err := ReadAll(wrap(bytes.NewReader(want)), length, nil)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s, %s, %d bytes: got %d bytes, %v", name, kind, size, len(got), err)
				}
			}
		}
	}
}

func TestReadWholeFails(t *testing.T) {
	broken := errors.New("broken")
	for _, length := range []int64{-1, 3, 10} {
		if _, err := ReadAll(io.MultiReader(bytes.NewReader([]byte("abc")), iotest.ErrReader(broken)), length, nil); !errors.Is(err, broken) {
			t.Errorf("length %d: err = %v, want %v", length, err, broken)
		}
		if _, err := ReadAll(io.MultiReader(bytes.NewReader([]byte("abc")), iotest.ErrReader(io.ErrUnexpectedEOF)), length, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("length %d: err = %v, want that the body was cut off", length, err)
		}
	}
}

// Two bodies read successively through one pooled buffer must not share their
// bytes.
func TestReadWholeOwnsItsBytes(t *testing.T) {
	first, err := ReadAll(bytes.NewReader(bytes.Repeat([]byte("a"), 1000)), -1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := ReadAll(bytes.NewReader(bytes.Repeat([]byte("b"), 1000)), -1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first, bytes.Repeat([]byte("a"), 1000)) {
		t.Errorf("the first body now reads %q", first)
	}
}

func TestReadWholeAllocatesOnce(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 256<<10)
	r := bytes.NewReader(nil)
	if n := testing.AllocsPerRun(20, func() {
		r.Reset(data)
		if _, err := ReadAll(r, int64(len(data)), nil); err != nil {
			t.Fatal(err)
		}
	}); n > 2 {
		t.Errorf("%v allocations for an announced length, want at most 2", n)
	}
}
