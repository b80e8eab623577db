// Package attach lets programs of one user share a running gateway.
//
// A gateway that serves listens on a socket that only its user can open, under
// a name made from its configuration. A client's `junctor mcp`, started again
// and again by agents, finds it there and passes its byte streams through,
// instead of starting every server once more; the command line uses the same
// socket for HTTP.
//
// Without such a gateway the first `junctor mcp` becomes a temporary one. When it
// leaves, one of the programs that used it takes its place; when a gateway that
// serves starts, the temporary one yields the socket to it.
//
// It promises that nobody else can listen in the gateway's place or connect to
// it, and that a socket left behind by a gateway that was killed is taken over.
// It knows neither MCP nor the routes: it carries bytes.
package attach
