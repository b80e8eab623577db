// Package discovery is the MCP face: many servers behind one connection.
//
// It offers three views of the same core. The meta view has five tools with
// which an agent finds and runs everything; the direct view has all enabled
// tools under names that every client takes, with the resources and prompts of
// the upstreams; the transparent view is one upstream as it is. Every view is
// served over streamable HTTP and over byte streams, in both eras of the
// protocol.
//
// It promises that what an upstream answers reaches the caller byte for byte,
// and that every answer of its own is bounded. It translates and decides
// nothing: calls go through [Calls], tools come from [Catalog].
package discovery
