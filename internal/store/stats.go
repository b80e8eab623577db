package store

import (
	"encoding/json"
	"maps"
	"math/bits"
	"slices"
	"time"
)

// CallStats summarises a part of the call log.
type CallStats struct {
	Total   CallSummary   `json:"total"`
	Servers []CallSummary `json:"servers"` // by name
	Tools   []CallSummary `json:"tools"`   // by server and name
}

// CallSummary summarises the calls of one tool, of one server, or all. The
// percentiles are those of the duration, over calls however they ended.
type CallSummary struct {
	Server string
	Tool   string
	Calls  int64
	Errors int64 // StatusError
	Failed int64 // StatusFailed
	P50    time.Duration
	P95    time.Duration
	P99    time.Duration
}

// MarshalJSON writes the summary as APIs show it, times in milliseconds.
func (s CallSummary) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Server string  `json:"server,omitempty"`
		Tool   string  `json:"tool,omitempty"`
		Calls  int64   `json:"calls"`
		Errors int64   `json:"errors"`
		Failed int64   `json:"failed"`
		P50    float64 `json:"p50Ms"`
		P95    float64 `json:"p95Ms"`
		P99    float64 `json:"p99Ms"`
	}{s.Server, s.Tool, s.Calls, s.Errors, s.Failed, millis(s.P50), millis(s.P95), millis(s.P99)})
}

// StatsCollector gathers statistics. The zero StatsCollector is empty.
type StatsCollector struct{ tools map[[2]string]*ToolCollector }

// ToolCollector gathers the statistics of one tool.
type ToolCollector struct {
	summary CallSummary
	took    Durations
}

// Tool returns the collector of a tool.
func (c *StatsCollector) Tool(server, tool string) *ToolCollector {
	key := [2]string{server, tool}
	t := c.tools[key]
	if t == nil {
		if c.tools == nil {
			c.tools = map[[2]string]*ToolCollector{}
		}
		t = &ToolCollector{summary: CallSummary{Server: server, Tool: tool}}
		c.tools[key] = t
	}
	return t
}

// Add counts a call that took so many microseconds.
func (t *ToolCollector) Add(status Status, micros int64) {
	t.summary.Calls++
	switch status {
	case StatusError:
		t.summary.Errors++
	case StatusFailed:
		t.summary.Failed++
	}
	t.took.Add(micros)
}

func (t *ToolCollector) merge(other *ToolCollector) {
	t.summary.Calls += other.summary.Calls
	t.summary.Errors += other.summary.Errors
	t.summary.Failed += other.summary.Failed
	t.took.Merge(&other.took)
}

func (t *ToolCollector) finish() CallSummary {
	s := t.summary
	s.P50, s.P95, s.P99 = t.took.Percentile(50), t.took.Percentile(95), t.took.Percentile(99)
	return s
}

// Stats returns what was gathered.
func (c *StatsCollector) Stats() CallStats {
	out := CallStats{Servers: []CallSummary{}, Tools: []CallSummary{}}
	var total, server ToolCollector
	keys := slices.SortedFunc(maps.Keys(c.tools), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for i, key := range keys {
		t := c.tools[key]
		out.Tools = append(out.Tools, t.finish())
		total.merge(t)
		server.summary.Server = key[0]
		server.merge(t)
		if i+1 == len(keys) || keys[i+1][0] != key[0] {
			out.Servers = append(out.Servers, server.finish())
			server = ToolCollector{}
		}
	}
	out.Total = total.finish()
	return out
}

// Durations counts durations in buckets of which each is at most 1/64 wide,
// so that percentiles of any number of calls take little memory and are less
// than one per cent off. The zero Durations is empty.
type Durations struct {
	n       int64
	buckets []uint32
}

const subBuckets = 64 // of each power of two

// Add counts a duration in microseconds.
func (d *Durations) Add(micros int64) {
	i := bucketOf(micros)
	if i >= len(d.buckets) {
		d.buckets = append(d.buckets, make([]uint32, i+1-len(d.buckets))...)
	}
	d.buckets[i]++
	d.n++
}

// Merge adds what other counted.
func (d *Durations) Merge(other *Durations) {
	if missing := len(other.buckets) - len(d.buckets); missing > 0 {
		d.buckets = append(d.buckets, make([]uint32, missing)...)
	}
	for i, n := range other.buckets {
		d.buckets[i] += n
	}
	d.n += other.n
}

// Percentile returns the duration that p of a hundred calls do not exceed.
func (d *Durations) Percentile(p float64) time.Duration {
	rank := int64(p / 100 * float64(d.n))
	if float64(rank)*100 < p*float64(d.n) {
		rank++
	}
	for i, n := range d.buckets {
		if rank -= int64(n); rank <= 0 {
			return time.Duration(middleOf(i)) * time.Microsecond
		}
	}
	return 0
}

func bucketOf(micros int64) int {
	v := uint64(max(micros, 0))
	if v < 2*subBuckets {
		return int(v)
	}
	shift := bits.Len64(v) - 7
	return shift*subBuckets + int(v>>shift)
}

// middleOf returns the value in the middle of a bucket.
func middleOf(i int) int64 {
	if i < 2*subBuckets {
		return int64(i)
	}
	shift := i/subBuckets - 1
	low := int64(i-shift*subBuckets) << shift
	return low + (int64(1)<<shift)/2
}
