package search

import (
	"math"

	"junctor/internal/tool"
)

// Signals tells what is known about a tool beyond its text. It is called for
// the best tools of a query, from the goroutine that searches.
type Signals func(tool.Name) Signal

// Signal is what is known about one tool.
type Signal struct {
	Calls           int64 `json:"calls"` // by everybody
	Successes       int64 `json:"successes"`
	CallerCalls     int64 `json:"callerCalls"` // by the caller who searches
	CallerSuccesses int64 `json:"callerSuccesses"`
	CircuitOpen     bool  `json:"circuitOpen,omitempty"` // calls are refused at present
	Down            bool  `json:"down,omitempty"`        // its upstream cannot be reached
}

// What signals can do, on the scale on which a perfect match has 2.4:
// enough to part tools that fit alike, never enough to raise one that does
// not fit.
const (
	mostOverall    = 0.03
	mostCaller     = 0.05
	circuitPenalty = 0.10
	downPenalty    = 0.15
)

// shift returns what a signal adds to a score.
func (g Signal) shift() float32 {
	v := mostOverall*usage(g.Calls, g.Successes) + mostCaller*usage(g.CallerCalls, g.CallerSuccesses)
	switch {
	case g.Down:
		v -= downPenalty
	case g.CircuitOpen:
		v -= circuitPenalty
	}
	return float32(v)
}

// usage is between -1 and 1: it grows with the calls, slower and slower, up to
// a hundred, and turns negative when more than half of them fail.
func usage(calls, successes int64) float64 {
	if calls <= 0 {
		return 0
	}
	share := float64(min(max(successes, 0), calls)) / float64(calls)
	return min(1, math.Log1p(float64(calls))/math.Log(100)) * (2*share - 1)
}
