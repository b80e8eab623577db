// Package tool has the types that every other package uses: the names of tools,
// their definitions, calls, results and errors.
//
// It promises that a tool, a call and a failure have one Go type each in the
// whole program. It imports the standard library alone, performs no I/O and
// holds no state.
package tool
