package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// someText returns about n bytes of words, which depend on the seed.
func someText(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, seed))
	var words []string
	for range 2000 {
		var w []byte
		for range 3 + r.IntN(8) {
			w = append(w, "abcdefghijklmnopqrstuvwxyz"[r.IntN(26)])
		}
		words = append(words, string(w))
	}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[int(float64(len(words))*r.Float64()*r.Float64())] + " ")
	}
	return b.String()
}

// TestFilterHasEveryPartOfItsTexts checks that a filter excludes no part of its
// texts, at any offset.
func TestFilterHasEveryPartOfItsTexts(t *testing.T) {
	texts := []string{someText(1, 60_000), "é, 漢字 and \x00\xff", "abcd", "abcde", "abc", ""}
	var f textFilter
	for _, text := range texts {
		f.add([]byte(text))
	}
	filter := f.bytes()
	check := func(part string) {
		for _, part := range []string{part, strings.ToUpper(part)} {
			if !mayHave(filter, newNeedle(part).text) {
				t.Fatalf("%q is excluded", part)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		at := r.IntN(len(texts[0]))
		check(texts[0][at:min(len(texts[0]), at+r.IntN(30))])
	}
	for _, text := range texts[1:] {
		for from := range len(text) {
			for to := from; to <= len(text); to++ {
				if !mayHave(filter, text[from:to]) {
					t.Fatalf("%q is excluded", text[from:to])
				}
			}
		}
	}
	if !mayHave(nil, "a text") {
		t.Error("a block without a filter may have any text")
	}
}

// TestFilterExcludesOtherTexts checks that the filter of a block of usual size
// excludes nearly all texts that are not in it.
func TestFilterExcludesOtherTexts(t *testing.T) {
	var f textFilter
	f.add([]byte(someText(1, blockBytes)))
	words := slices.DeleteFunc(strings.Fields(someText(2, 20_000)), func(w string) bool { return len(w) < 9 })
	kept, filter := 0, f.bytes()
	for _, w := range words {
		if mayHave(filter, w) {
			kept++
		}
	}
	if kept*10 > len(words) {
		t.Errorf("%d of %d texts are not excluded", kept, len(words))
	}
}

// TestTextSearchUsesFilters checks that a text is found in the one block that
// has it, in the contents, an id or a name, and that filters are deleted with
// their blocks.
func TestTextSearchUsesFilters(t *testing.T) {
	ctx := context.Background()
	cfg := store.DefaultConfig()
	cfg.Path = t.TempDir() + "/junctor.db"
	s := openAt(t, cfg)
	begun := time.Now().Add(-3 * time.Hour)
	text := someText(1, 300_000)
	var calls []store.Call
	for i := range 300 { // three blocks, of an hour each
		c := storetest.Call(i)
		c.Seq, c.ID, c.Time = int64(i+1), fmt.Sprintf("call-%04d-id", i), begun.Add(time.Duration(i/100)*70*time.Minute)
		c.Arguments = fmt.Appendf(nil, `{"q":%q}`, text[i*1000:i*1000+900])
		switch i {
		case 150:
			c.Arguments = []byte("{\"q\":\"the Zweckverband #4! \ufffd6789\"}")
		case 250:
			c.Server = "quarterly"
		}
		calls = append(calls, c)
	}
	if err := s.Import(ctx, store.Batch{Calls: calls}); err != nil {
		t.Fatal(err)
	}
	filters := func() (n int) {
		if err := s.read.QueryRow("SELECT count(*) FROM call_filters JOIN call_blocks USING (seq)").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := filters(); n != 3 {
		t.Fatalf("%d filters, want 3", n)
	}
	for text, want := range map[string][]int64{
		"zweckverband":    {151},
		"E ZWECKVERBANDS": nil,
		"CALL-0007-ID":    {8},
		"quarterly":       {251},
		"#4!":             {151}, // too short for filters
		"4! \xff6789":     {151}, // invalid UTF-8 matches U+FFFD, as in records
	} {
		for _, q := range []store.CallQuery{{Text: text}, {Text: text, Face: calls[0].Face}, {Text: text, AfterSeq: 1}} {
			found, err := s.Calls(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, c := range found {
				got = append(got, c.Seq)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v: %v, want %v", q, got, want)
			}
		}
	}
	last := func() (excluded int) {
		err := s.snapshot(ctx, func(tx *snapshot) error {
			blocks, err := tx.extents(store.CallQuery{Text: "zweckverband"}, nil, 10)
			for _, e := range blocks {
				if e.excluded {
					excluded++
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return excluded
	}
	if n := last(); n != 2 {
		t.Errorf("%d blocks are excluded, want 2", n)
	}
	if _, err := s.deleteRows(ctx, "DELETE FROM call_blocks WHERE seq < 200"); err != nil {
		t.Fatal(err)
	}
	if n := filters(); n != 1 {
		t.Errorf("%d filters after the deletion of two blocks, want 1", n)
	}
}

// TestJoinedBlocksHaveFilters checks that small blocks have no filter and that
// the block they are joined into has one.
func TestJoinedBlocksHaveFilters(t *testing.T) {
	ctx := context.Background()
	cfg := store.DefaultConfig()
	cfg.Path = t.TempDir() + "/junctor.db"
	s := openAt(t, cfg)
	text := someText(3, 200_000)
	for i := range 200 {
		c := storetest.Call(i)
		c.Seq, c.ID, c.Time = int64(i+1), fmt.Sprint("call", i), time.Now()
		c.Arguments = fmt.Appendf(nil, `{"q":%q}`, text[i*1000:i*1000+900])
		if err := s.Import(ctx, store.Batch{Calls: []store.Call{c}}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(table string) (n int) {
		if err := s.read.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count("call_filters"); n != 0 {
		t.Errorf("%d small blocks have a filter", n)
	}
	for range 3 {
		if err := s.joinBlocks(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if filters, blocks := count("call_filters"), count("call_blocks"); filters == 0 || blocks >= 200 {
		t.Errorf("%d filters for %d blocks", filters, blocks)
	}
}
