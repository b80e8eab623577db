// Package attach lets programs of one user share a running gateway.
//
// A gateway that serves listens on a socket that only its user can open, under
// a name made from its configuration. A client's `junctor mcp`, started again
// and again by agents, finds it there and passes its byte streams through,
// instead of starting every server once more; the command line uses the same
// socket for HTTP.
//
// Without such a gateway the first `junctor mcp` becomes a temporary one. When it
// exits, one of the programs that used it takes its place. When a gateway that
// serves starts, the temporary one yields the socket to it.
//
// It promises that other users can neither listen in the gateway's place nor
// connect to it, and that the socket of a gateway that was killed is replaced. It
// knows neither MCP nor the routes: it transfers bytes.
package attach
