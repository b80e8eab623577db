package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"junctor/internal/store"
)

// nodeMessages checks that messages reach only their queue, from any handle,
// and stay until they are acknowledged.
func nodeMessages(t *testing.T, open Opener) {
	ctx := deadline(t)
	a, b := running(t, open), running(t, open)
	signals := b.Watch(ctx, store.TopicNodeMessages("b"))
	if err := a.SendMessages(ctx, "b"); err != nil {
		t.Errorf("no messages: %v", err)
	}
	odd := string([]byte{0, 1, 255, '\''})
	for _, messages := range [][]string{{"one", "two"}, {""}, {odd}} {
		var data [][]byte
		for _, l := range messages {
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
	case <-signals:
	case <-ctx.Done():
		t.Fatal("nothing was signalled of the messages")
	}
	want := []string{"one", "two", "", odd}
	first := must[[]store.NodeMessage](t)(b.TakeMessages(ctx, "b", nil))
	if got := texts(first); !slices.Equal(got, want) {
		t.Fatalf("messages %q, want %q", got, want)
	}
	again := must[[]store.NodeMessage](t)(b.TakeMessages(ctx, "b", []int64{first[0].Seq, first[2].Seq}))
	if got := texts(again); !slices.Equal(got, []string{"two", odd}) {
		t.Errorf("after two were done: %q", got)
	}
	// The sequence number of a message of another queue deletes nothing.
	other := must[[]store.NodeMessage](t)(b.TakeMessages(ctx, "c", []int64{again[0].Seq}))
	if got := texts(other); !slices.Equal(got, []string{"not for b"}) {
		t.Errorf("the other queue: %q", got)
	}
	last := must[[]store.NodeMessage](t)(b.TakeMessages(ctx, "b", []int64{again[0].Seq, again[1].Seq}))
	if len(last) != 0 {
		t.Errorf("messages that were done are still there: %q", texts(last))
	}
}

func texts(messages []store.NodeMessage) []string {
	out := make([]string, len(messages))
	for i, l := range messages {
		out[i] = string(l.Data)
	}
	return out
}

// nodeMessageOrder checks that the messages of each sender are received in the
// order sent, in bounded batches, each once.
func nodeMessageOrder(t *testing.T, open Opener) {
	ctx := deadline(t)
	const senders, each = 4, 100 // together more than MaxNodeMessages
	var wg sync.WaitGroup
	for s := range senders {
		h := open(t)
		wg.Go(func() {
			for i := 0; i < each; i += 2 {
				if err := h.SendMessages(ctx, "queue", []byte(fmt.Sprintf("%d %d", s, i)), []byte(fmt.Sprintf("%d %d", s, i+1))); err != nil {
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
		messages, err := h.TakeMessages(ctx, "queue", done)
		if err != nil || len(messages) == 0 || len(messages) > store.MaxNodeMessages {
			t.Fatalf("%d messages after %d, %v", len(messages), total, err)
		}
		done = done[:0]
		for _, l := range messages {
			var s, i int
			if _, err := fmt.Sscanf(string(l.Data), "%d %d", &s, &i); err != nil || next[s] != i {
				t.Fatalf("message %q, want number %d (%v)", l.Data, next[s], err)
			}
			next[s]++
			done = append(done, l.Seq)
		}
		total += len(messages)
	}
}
