// Package clients knows the MCP clients that people have on their machines:
// where each keeps its configuration, how to read the servers in it, and how
// to write Junctor into it.
//
// It promises that reading starts nothing and changes nothing, that a change
// is shown before it is made, that the old file is kept beside the new one,
// and that everything else in the file stays as it was. Where the files are
// follows from the operating system, the home folder and the environment
// alone, all of which the caller hands in ([Machine]).
//
// It stands above config, whose shapes it reads and writes.
package clients
