//go:build unix

package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// BenchmarkAppend measures what the record of a call costs, in processor time
// too: the commit is shared, so the clock alone does not tell.
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
			c.Arguments = json.RawMessage(`{"q":"` + strings.Repeat("a", 200) + `"}`)
			c.Result = json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("r", 800) + `"}]}`)
			var n atomic.Int64
			b.ReportAllocs()
			b.SetParallelism((callers + 1) / 2) // two processors
			before := cpu(b)
			b.RunParallel(func(pb *testing.PB) {
				c := c
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

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
