// Package tool has the types that every other package uses: the names of tools,
// their definitions, calls, results and errors.
//
// A tool, a call and a failure have one Go type each in the whole program. The
// package imports only the standard library and performs no I/O. Its only state
// is a pool of memory for results.
package tool
