//go:build unix

package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"junctor/internal/store/storetest"
)

// BenchmarkAppend measures the cost of recording a call in this process,
// including processor time, on one node and on three that share the database.
func BenchmarkAppend(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		for _, callers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("nodes=%d/callers=%d", nodes, callers), func(b *testing.B) {
				cfg := config(shared.Database(b))
				stores := make([]*Store, nodes)
				for i := range stores {
					stores[i] = openAt(b, cfg)
				}
				c := storetest.Call(1)
				c.Time = time.Now()
				c.Arguments = json.RawMessage(`{"q":"` + strings.Repeat("a", 200) + `"}`)
				c.Result = json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("r", 800) + `"}]}`)
				var n, worker atomic.Int64
				b.ReportAllocs()
				b.SetParallelism((callers + 1) / 2) // two processors
				before := cpu(b)
				b.RunParallel(func(pb *testing.PB) {
					c, s := c, stores[int(worker.Add(1))%nodes]
					for pb.Next() {
						c.ID = fmt.Sprintf("%016x", uint64(n.Add(1))*0x9e3779b97f4a7c15)
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
}

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
