package search

import (
	"math"

	"junctor/internal/tool"
)

// Signals returns usage and health of a tool. It is called for the best tools
// of a query, on the goroutine that searches.
type Signals func(tool.Name) Signal

// Signal is the usage and health of one tool.
type Signal struct {
	Calls           int64 `json:"calls"` // calls by all callers
	Successes       int64 `json:"successes"`
	CallerCalls     int64 `json:"callerCalls"` // calls by the searching caller
	CallerSuccesses int64 `json:"callerSuccesses"`
	CircuitOpen     bool  `json:"circuitOpen,omitempty"` // calls are currently refused
	Down            bool  `json:"down,omitempty"`        // its server is not connected
	Deprecated      bool  `json:"deprecated,omitempty"`  // its description says that it is deprecated
}

// The maximum effect of signals, on a scale on which a perfect match has 2.4:
// enough to order tools that match equally, never enough to raise one that does
// not match.
const (
	maxOverallBonus = 0.03
	maxCallerBonus  = 0.05
	circuitPenalty  = 0.10
	downPenalty     = 0.15

	deprecatedPenalty = 0.15
)

// shift returns the amount that a signal adds to a score.
func (g Signal) shift() float32 {
	v := maxOverallBonus*usage(g.Calls, g.Successes) + maxCallerBonus*usage(g.CallerCalls, g.CallerSuccesses)
	switch {
	case g.Down:
		v -= downPenalty
	case g.CircuitOpen:
		v -= circuitPenalty
	}
	if g.Deprecated {
		v -= deprecatedPenalty
	}
	return float32(v)
}

// usage returns a value between -1 and 1. It grows logarithmically with the
// calls, up to a hundred, and is negative if more than half of them fail.
func usage(calls, successes int64) float64 {
	if calls <= 0 {
		return 0
	}
	share := float64(min(max(successes, 0), calls)) / float64(calls)
	return min(1, math.Log1p(float64(calls))/math.Log(100)) * (2*share - 1)
}
