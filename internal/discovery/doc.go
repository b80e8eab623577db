// Package discovery is the MCP API: many servers behind one connection.
//
// It provides three views of the same core. The meta view has five tools with
// which an agent finds and runs everything. The direct view has all enabled
// tools under names that every client accepts, and the resources and prompts
// of the upstreams. The transparent view is one upstream, unchanged. Every
// view is served over streamable HTTP and over byte streams, in both eras of
// the protocol.
//
// Responses of an upstream reach the caller byte for byte, and every response
// of the gateway itself is bounded. The package only translates: calls go
// through [Calls], and the tools come from the catalogue.
package discovery
