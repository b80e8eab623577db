// Package results reduces large results of tools: it selects parts of a result
// with jq expressions, and caches results that are too large for a response, so
// that their caller can read them page by page.
//
// The time of an expression is bounded, and so is the size of the cache, per
// caller and in total.
package results
