package sqlite

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// TestTextSearchAcrossBlocks checks that a text is found in every block of the
// time range, in both orders, with and without a condition on names.
func TestTextSearchAcrossBlocks(t *testing.T) {
	cfg := store.DefaultConfig()
	cfg.Path = t.TempDir() + "/junctor.db"
	s := openAt(t, cfg)
	begun := time.Now().Add(-48 * time.Hour)
	// Two records per block, which spans at most an hour. Not in order of time.
	var calls []store.Call
	for i, hours := range []int{0, 0, 5, 5, 40, 40, 10, 10, 20, 20} {
		c := storetest.Call(i)
		c.Seq, c.ID, c.Server, c.Time = int64(i+1), fmt.Sprint("call", i), fmt.Sprint("server", i%2), begun.Add(time.Duration(hours)*time.Hour)
		c.Arguments = []byte(`{"q":"the Needle"}`)
		if i == 2 || i == 3 {
			c.Arguments = []byte(`{"q":"hay"}`)
		}
		calls = append(calls, c)
	}
	if err := s.Import(context.Background(), store.Batch{Calls: calls}); err != nil {
		t.Fatal(err)
	}
	var blocks int
	if err := s.read.QueryRow("SELECT count(*) FROM call_blocks").Scan(&blocks); err != nil || blocks != 5 {
		t.Fatalf("%d blocks, %v; want 5", blocks, err)
	}
	early := begun.Add(30 * time.Hour)
	for name, tt := range map[string]struct {
		query store.CallQuery
		want  []int64
	}{
		"all":         {store.CallQuery{Text: "NEEDLE"}, []int64{1, 2, 5, 6, 7, 8, 9, 10}},
		"the newest":  {store.CallQuery{Text: "NEEDLE", Limit: 7}, []int64{2, 5, 6, 7, 8, 9, 10}},
		"the oldest":  {store.CallQuery{Text: "needle", AfterSeq: 1, Limit: 6}, []int64{2, 5, 6, 7, 8, 9}},
		"in time":     {store.CallQuery{Text: "needle", Until: early}, []int64{1, 2, 7, 8, 9, 10}},
		"of one name": {store.CallQuery{Text: "needle", Server: "server1", Until: early}, []int64{2, 8, 10}},
		"nowhere":     {store.CallQuery{Text: "needles"}, nil},
	} {
		found, err := s.Calls(context.Background(), tt.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, c := range found {
			got = append(got, c.Seq)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
