// Package results makes large results of tools fit: it selects parts of a
// result with jq expressions, and keeps results that are too large for an
// answer, so that their caller can read them piece by piece.
//
// It promises that an expression ends within its time, and that what is kept
// is bounded in bytes, per caller and in all.
package results
