// Package config finds, reads, checks, watches and edits the configuration
// file, and joins it with the environment.
//
// It promises that all problems are reported together, each with its line and
// key. A file that was found rather than named is used only if the user trusts
// it. An edit keeps the comments, the order and the formatting of the file. The
// formats of other MCP clients are accepted unchanged.
//
// The package does not know what the settings mean: each is checked by the
// package that owns it. It reads no environment by itself; the caller passes what
// it may read ([Options]).
package config
