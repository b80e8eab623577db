// Package mcp is the wire: JSON-RPC messages as bytes, peers, transports, and
// the two eras of the Model Context Protocol, with handshake and sessions
// (2024-11-05 to 2025-11-25) and stateless (2026-07-28).
//
// It promises that what it does not need to look at passes as the bytes that
// came, that the messages of one connection keep their order, and that
// everything from outside is bounded in size, depth, number and time.
//
// [Client] is the side that faces an upstream, [Server] the side that faces a
// caller. Neither knows tools, policies or configuration.
package mcp
