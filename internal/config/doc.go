// Package config finds, reads, validates, watches and edits the configuration
// file, and merges it with the environment.
//
// All problems are reported together, each with its line and key. A file that
// was found rather than named is used only if the user trusts it. An edit
// preserves the comments, the order and the formatting of the file. The formats
// of other MCP clients are accepted unchanged.
//
// The package does not interpret settings: each is validated by the package
// that owns it. It does not read the environment itself; the caller passes what
// it may read ([Options]).
package config
