// Package mcp defines the messages of the Model Context Protocol, as bytes, and
// how they are put on byte streams and event streams.
//
// A [Message] is a JSON-RPC message whose envelope has been read; params,
// results and error data stay the bytes that came. [Decode] checks a whole
// message once, within [Limits], and everything behind it may rely on valid
// JSON. [AppendMessage] and [Encode] write one. A [Link] carries messages both
// ways: [Stream] over a pair of byte streams, with lines or Content-Length
// headers, and [Pipe] within the process. [EventReader] reads server-sent
// events.
//
// The protocol has two eras: with handshake and sessions (2024-11-05 to
// 2025-11-25), and stateless (2026-07-28), where _meta and HTTP headers repeat
// what the handshake agreed on. [ParamFields] and [HeaderParams] read them.
//
// The package starts no goroutine and keeps no state but what a Stream, a Pipe
// or an EventReader holds for its one reader. Everything from outside is
// bounded in size, depth and number. Package mcpclient faces MCP servers with
// it, package mcpserver faces clients. Start reading at [Message] and [Decode].
package mcp
