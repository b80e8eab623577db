package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"junctor/internal/store"
)

// mail: letters reach their box alone, from any handle, and stay until they
// are said to be done.
func mail(t *testing.T, open Opener) {
	ctx := deadline(t)
	a, b := running(t, open), running(t, open)
	heard := b.Watch(ctx, store.TopicNodeMessages("b"))
	if err := a.SendMessages(ctx, "b"); err != nil {
		t.Errorf("no letters: %v", err)
	}
	odd := string([]byte{0, 1, 255, '\''})
	for _, letters := range [][]string{{"one", "two"}, {""}, {odd}} {
		var data [][]byte
		for _, l := range letters {
			data = append(data, []byte(l))
		}
		if err := a.SendMessages(ctx, "b", data...); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SendMessages(ctx, "c", []byte("not for b")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-heard:
	case <-ctx.Done():
		t.Fatal("nothing was heard of the letters")
	}
	want := []string{"one", "two", "", odd}
	first := must[[]store.NodeMessage](t)(b.TakeMessages(ctx, "b", nil))
	if got := texts(first); !slices.Equal(got, want) {
		t.Fatalf("letters %q, want %q", got, want)
	}
	again := must[[]store.NodeMessage](t)(b.TakeMessages(ctx, "b", []int64{first[0].Seq, first[2].Seq}))
	if got := texts(again); !slices.Equal(got, []string{"two", odd}) {
		t.Errorf("after two were done: %q", got)
	}
	// Numbers of another box are not this box's to take out.
	other := must[[]store.NodeMessage](t)(b.TakeMessages(ctx, "c", []int64{again[0].Seq}))
	if got := texts(other); !slices.Equal(got, []string{"not for b"}) {
		t.Errorf("the other box: %q", got)
	}
	last := must[[]store.NodeMessage](t)(b.TakeMessages(ctx, "b", []int64{again[0].Seq, again[1].Seq}))
	if len(last) != 0 {
		t.Errorf("letters that were done are still there: %q", texts(last))
	}
}

func texts(letters []store.NodeMessage) []string {
	out := make([]string, len(letters))
	for i, l := range letters {
		out[i] = string(l.Data)
	}
	return out
}

// mailOrder: the letters of each sender come in the order of sending, in
// bounded portions, each once.
func mailOrder(t *testing.T, open Opener) {
	ctx := deadline(t)
	const senders, each = 4, 100 // more than fits into one portion
	var wg sync.WaitGroup
	for s := range senders {
		h := open(t)
		wg.Go(func() {
			for i := 0; i < each; i += 2 {
				if err := h.SendMessages(ctx, "box", []byte(fmt.Sprintf("%d %d", s, i)), []byte(fmt.Sprintf("%d %d", s, i+1))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	h := open(t)
	next := make([]int, senders)
	var done []int64
	for total := 0; total < senders*each; {
		letters, err := h.TakeMessages(ctx, "box", done)
		if err != nil || len(letters) == 0 || len(letters) > store.MaxLetters {
			t.Fatalf("%d letters after %d, %v", len(letters), total, err)
		}
		done = done[:0]
		for _, l := range letters {
			var s, i int
			if _, err := fmt.Sscanf(string(l.Data), "%d %d", &s, &i); err != nil || next[s] != i {
				t.Fatalf("letter %q, want number %d (%v)", l.Data, next[s], err)
			}
			next[s]++
			done = append(done, l.Seq)
		}
		total += len(letters)
	}
}
