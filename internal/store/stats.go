package store

import (
	"cmp"
	"encoding/json"
	"math/bits"
	"slices"
	"time"
)

// CallStats summarises the calls that a query selects.
type CallStats struct {
	Total   CallSummary   `json:"total"`
	Servers []CallSummary `json:"servers"` // by server, in the order of the names
	Tools   []CallSummary `json:"tools"`   // by tool, in the order of servers and names
	Callers []CallSummary `json:"callers"` // by caller, in the order of the ids
	Faces   []CallSummary `json:"faces"`   // by API, in the order of the names

	// Intervals summarises each interval of the query, in chronological order
	// and including those without calls.
	Intervals []CallSummary `json:"intervals,omitempty"`
}

// CallSummary summarises the calls of one tool, server, caller, face or
// interval, or all calls. The percentiles are of the duration, over calls of
// every status.
type CallSummary struct {
	Server     string
	Tool       string
	Caller     string
	CallerName string
	Face       string
	From       time.Time // start of the interval
	Calls      int64
	Errors     int64 // StatusError
	Failed     int64 // StatusFailed
	P50        time.Duration
	P95        time.Duration
	P99        time.Duration
}

// CallSummaryJSON is a CallSummary in JSON. The percentiles are of the duration
// in milliseconds, over calls of every status.
type CallSummaryJSON struct {
	Server     string    `json:"server,omitempty"`
	Tool       string    `json:"tool,omitempty"`
	Caller     string    `json:"caller,omitempty"`
	CallerName string    `json:"callerName,omitempty"`
	Face       string    `json:"face,omitempty"` // API through which the calls were made
	From       time.Time `json:"from,omitzero"`  // start of the interval
	Calls      int64     `json:"calls"`
	Errors     int64     `json:"errors"` // calls with the status error
	Failed     int64     `json:"failed"` // calls with the status failed
	P50        float64   `json:"p50Ms"`
	P95        float64   `json:"p95Ms"`
	P99        float64   `json:"p99Ms"`
}

// MarshalJSON writes the summary as APIs show it, times in milliseconds.
func (s CallSummary) MarshalJSON() ([]byte, error) {
	return json.Marshal(CallSummaryJSON{s.Server, s.Tool, s.Caller, s.CallerName, s.Face, s.From, s.Calls, s.Errors, s.Failed, millis(s.P50), millis(s.P95), millis(s.P99)})
}

// EmptyStats returns statistics without any call, with the intervals of q.
func EmptyStats(q CallQuery) CallStats {
	s := CallStats{Servers: []CallSummary{}, Tools: []CallSummary{}, Callers: []CallSummary{}, Faces: []CallSummary{}}
	for i := range q.Intervals {
		s.Intervals = append(s.Intervals, CallSummary{From: q.Since.Add(time.Duration(i) * q.Interval())})
	}
	return s
}

// StatsCollector gathers statistics of the calls of a query.
type StatsCollector struct {
	query     CallQuery
	groups    map[CallSummary]*GroupCollector // by their names
	intervals []counter
}

// GroupCollector gathers statistics of the calls that share a server, tool,
// caller and face.
type GroupCollector struct {
	since     int64 // in microseconds
	width     int64
	intervals []counter
	counter
}

// counter counts calls.
type counter struct {
	calls, errors, failed int64
	took                  Durations
}

// NewStatsCollector returns an empty StatsCollector.
func NewStatsCollector(q CallQuery) *StatsCollector {
	return &StatsCollector{query: q, groups: map[CallSummary]*GroupCollector{}, intervals: make([]counter, q.Intervals)}
}

// Group returns the collector of the calls with these names.
func (c *StatsCollector) Group(server, tool, caller, callerName, face string) *GroupCollector {
	key := CallSummary{Server: server, Tool: tool, Caller: caller, CallerName: callerName, Face: face}
	g := c.groups[key]
	if g == nil {
		g = &GroupCollector{since: c.query.Since.UnixMicro(), width: c.query.Interval().Microseconds(), intervals: c.intervals}
		c.groups[key] = g
	}
	return g
}

// Add counts a call at the given time, in microseconds since 1970, that took
// micros microseconds.
func (g *GroupCollector) Add(status Status, at, micros int64) {
	g.add(status, micros)
	if len(g.intervals) > 0 {
		if i := (at - g.since) / g.width; at >= g.since {
			g.intervals[min(i, int64(len(g.intervals))-1)].add(status, micros)
		}
	}
}

func (c *counter) add(status Status, micros int64) {
	c.calls++
	switch status {
	case StatusError:
		c.errors++
	case StatusFailed:
		c.failed++
	}
	c.took.Add(micros)
}

func (c *counter) merge(other *counter) {
	c.calls += other.calls
	c.errors += other.errors
	c.failed += other.failed
	c.took.Merge(&other.took)
}

// summarize writes what was counted into s.
func (c *counter) summarize(s CallSummary) CallSummary {
	s.Calls, s.Errors, s.Failed = c.calls, c.errors, c.failed
	s.P50, s.P95, s.P99 = c.took.Percentile(50), c.took.Percentile(95), c.took.Percentile(99)
	return s
}

// Stats returns what was gathered.
func (c *StatsCollector) Stats() CallStats {
	out := EmptyStats(c.query)
	var total counter
	for _, g := range c.groups {
		total.merge(&g.counter)
	}
	out.Total = total.summarize(CallSummary{})
	names := map[string]string{}
	for key := range c.groups {
		names[key.Caller] = max(names[key.Caller], key.CallerName)
	}
	out.Servers = c.by(func(k CallSummary) CallSummary { return CallSummary{Server: k.Server} })
	out.Tools = c.by(func(k CallSummary) CallSummary { return CallSummary{Server: k.Server, Tool: k.Tool} })
	out.Callers = c.by(func(k CallSummary) CallSummary { return CallSummary{Caller: k.Caller, CallerName: names[k.Caller]} })
	out.Faces = c.by(func(k CallSummary) CallSummary { return CallSummary{Face: k.Face} })
	for i := range out.Intervals {
		out.Intervals[i] = c.intervals[i].summarize(out.Intervals[i])
	}
	return out
}

// by summarizes the groups that have the same key.
func (c *StatsCollector) by(key func(CallSummary) CallSummary) []CallSummary {
	merged := map[CallSummary]*counter{}
	for names, g := range c.groups {
		k := key(names)
		if merged[k] == nil {
			merged[k] = &counter{}
		}
		merged[k].merge(&g.counter)
	}
	out := []CallSummary{}
	for k, n := range merged {
		out = append(out, n.summarize(k))
	}
	slices.SortFunc(out, func(a, b CallSummary) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Face, b.Face))
	})
	return out
}

// Durations is a histogram of durations. A bucket has a single value or is at
// most 1/64 of its values wide, so that percentiles of any number of calls take
// little memory and are less than one per cent off. The zero Durations is empty.
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

// Merge adds the counts of other.
func (d *Durations) Merge(other *Durations) {
	if missing := len(other.buckets) - len(d.buckets); missing > 0 {
		d.buckets = append(d.buckets, make([]uint32, missing)...)
	}
	for i, n := range other.buckets {
		d.buckets[i] += n
	}
	d.n += other.n
}

// Percentile returns the duration that p per cent of the calls do not exceed.
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
