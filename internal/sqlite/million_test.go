//go:build unix

package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// BenchmarkMillion measures the queries of the Activity view on a call log of
// one million records, of a day or all of the last hour. Writing it takes a
// minute and 1 GB; JUNCTOR_BENCH_RECORDS sets another number of records.
func BenchmarkMillion(b *testing.B) {
	n := 1_000_000
	if text := os.Getenv("JUNCTOR_BENCH_RECORDS"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			b.Fatal(err)
		}
	}
	for name, span := range map[string]time.Duration{"day": 24 * time.Hour, "hour": time.Hour} {
		b.Run(name, func(b *testing.B) {
			cfg := store.DefaultConfig()
			cfg.Path = filepath.Join(b.TempDir(), "junctor.db")
			s := openAt(b, cfg)
			writeMany(b, s, n, span)
			var size int64
			if err := s.read.QueryRow("SELECT sum(bytes) FROM call_blocks").Scan(&size); err != nil {
				b.Fatal(err)
			}
			b.Logf("%d records, %d MB", n, size>>20)
			hour := time.Now().Add(-time.Hour)
			for name, ask := range map[string]func(context.Context) (int, error){
				"stats of the last hour": func(ctx context.Context) (int, error) {
					stats, err := s.Stats(ctx, store.CallQuery{Since: hour})
					return int(stats.Total.Calls), err
				},
				"stats of all": func(ctx context.Context) (int, error) {
					stats, err := s.Stats(ctx, store.CallQuery{})
					return int(stats.Total.Calls), err
				},
				"newest page":        page(s, store.CallQuery{Brief: true}),
				"page of one tool":   page(s, store.CallQuery{Server: "server_3", Tool: "tool_7", Brief: true}),
				"page of failures":   page(s, store.CallQuery{Status: store.StatusFailed, Brief: true}),
				"unknown caller":     page(s, store.CallQuery{Caller: "nobody", Brief: true}),
				"frequent text":      page(s, store.CallQuery{Text: words[2500], Brief: true}),
				"text of one call":   page(s, store.CallQuery{Text: "the Needle", Brief: true}),
				"text of none":       page(s, store.CallQuery{Text: "no such text", Brief: true}),
				"children of a call": page(s, store.CallQuery{Parent: "parent", Brief: true}),
				"one call by id": func(ctx context.Context) (int, error) {
					c, err := s.Call(ctx, "the first")
					return int(c.Seq), err
				},
			} {
				b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
					found := 0
					before := cpu(b)
					for b.Loop() {
						var err error
						if found, err = ask(context.Background()); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64((cpu(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
					b.ReportMetric(float64(found), "found")
					b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/op")
				})
			}
		})
	}
}

func page(s *Store, q store.CallQuery) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		calls, err := s.Calls(ctx, q)
		return len(calls), err
	}
}

// writeMany writes n records spread over a time span that ends now.
func writeMany(b *testing.B, s *Store, n int, span time.Duration) {
	texts := make([]string, 5000)
	for i := range texts {
		texts[i] = prose(i, 800)
	}
	begun := time.Now().Add(-span)
	var calls []store.Call
	for i := range n {
		c := storetest.Call(i)
		c.Seq, c.ID, c.RequestID, c.Parent, c.TraceID = int64(i+1), rand.Text(), "", "", rand.Text()
		c.Time = begun.Add(time.Duration(float64(span) * float64(i) / float64(n)))
		c.Duration = time.Duration(1+i*7919%100_000) * time.Microsecond
		c.Server, c.Tool, c.Caller = fmt.Sprintf("server_%d", i%10), fmt.Sprintf("tool_%d", i%50), fmt.Sprintf("key:%d", i%5)
		c.Session = fmt.Sprintf("session-%d", i/100)
		c.Arguments = json.RawMessage(`{"query":"` + texts[i%4999][:200] + `"}`)
		c.Result = json.RawMessage(`{"content":[{"type":"text","text":"` + texts[(i*7)%5000] + `"}]}`)
		if i%1000 == 999 {
			c.Status, c.Kind, c.Error, c.Result = store.StatusFailed, "timeout", "no answer in 30 s", nil
		}
		if i == 0 {
			c.ID, c.Parent, c.Error = "the first", "parent", "a NEEDLE and the needle"
		}
		if calls = append(calls, c); len(calls) == blockRecords/2 || i == n-1 {
			if err := s.Import(context.Background(), store.Batch{Calls: calls}); err != nil {
				b.Fatal(err)
			}
			calls = calls[:0]
		}
	}
}
