// Package attach lets the programs of one user share a running gateway.
//
// A permanent gateway listens on a socket that only its user can open, under a
// name derived from its configuration. A client's `junctor mcp`, which agents
// start repeatedly, connects its byte streams to that gateway instead of
// starting every server again. The command line uses the same socket for HTTP.
//
// Without such a gateway, the first `junctor mcp` becomes a temporary one.
// When it exits, one of the programs that used it takes its place. When a
// permanent gateway starts, the temporary one yields the socket to it.
//
// Other users can neither listen in the gateway's place nor connect to it, and
// the socket of a gateway that was killed is replaced. The package transfers
// bytes and does not depend on MCP or on the HTTP routes.
package attach
