// Package clients supports the MCP clients that people use: it locates their
// configuration files, reads the servers in them, and adds Junctor to them.
//
// Reading starts nothing and changes nothing. A change can be shown before it
// is made, a copy of the old file is kept next to the new one, and everything
// else in the file is unchanged. The locations of the files depend only on the
// operating system, the home folder and the environment, which the caller
// passes as a [Machine].
//
// It is on top of package config, whose formats it reads and writes.
package clients
