//go:build unix

package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mrand "math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// BenchmarkAppend measures the cost of recording a call, including processor
// time: commits are shared, so elapsed time alone says little.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			cfg := store.DefaultConfig()
			cfg.Path = filepath.Join(b.TempDir(), "junctor.db")
			s := openAt(b, cfg)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			defer func() { cancel(); <-ended }()
			c := storetest.Call(1)
			c.Time = time.Now()
			c.Arguments = json.RawMessage(`{"q":"` + prose(1, 200) + `"}`)
			c.Result = json.RawMessage(`{"content":[{"type":"text","text":"` + prose(2, 800) + `"}]}`)
			tools, results := make([]string, 20), make([]json.RawMessage, 500)
			for i := range tools {
				tools[i] = fmt.Sprintf("tool_%d", i)
			}
			for i := range results {
				results[i] = json.RawMessage(`{"content":[{"type":"text","text":"` + prose(i, 800) + `"}]}`)
			}
			var n atomic.Int64
			b.ReportAllocs()
			b.SetParallelism((callers + 1) / 2) // two processors
			before := cpu(b)
			b.RunParallel(func(pb *testing.PB) {
				c := c
				for pb.Next() {
					k := n.Add(1)
					c.ID, c.Tool, c.Result = rand.Text(), tools[k%int64(len(tools))], results[k%int64(len(results))]
					if err := s.Append(context.Background(), c); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// prose returns a text of about n bytes that compresses like natural language.
func prose(seed, n int) string {
	r := mrand.New(mrand.NewPCG(uint64(seed), 1))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%s ", words[int(float64(len(words))*r.Float64()*r.Float64())])
	}
	return b.String()
}

// words are some 3,000 made-up words.
var words = func() (out []string) {
	r := mrand.New(mrand.NewPCG(7, 7))
	for range 3000 {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteByte("bcdfghklmnprstvwz"[r.IntN(17)])
			b.WriteByte("aeiou"[r.IntN(5)])
		}
		out = append(out, b.String())
	}
	return out
}()

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
