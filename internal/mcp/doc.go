// Package mcp encodes and decodes the messages of the Model Context Protocol,
// and reads and writes them on byte streams and event streams.
//
// A [Message] is a JSON-RPC message whose envelope has been decoded; params,
// results and error data stay the received bytes. [Decode] validates a whole
// message once, within [Limits], and later code may rely on valid JSON.
// [AppendMessage] and [Encode] write one. A [Link] carries messages both
// ways: [Stream] over a pair of byte streams, with lines or Content-Length
// headers, and [Pipe] within the process. [EventReader] reads server-sent
// events.
//
// The protocol has two eras: the handshake era with sessions (2024-11-05 to
// 2025-11-25), and the stateless era (2026-07-28), where _meta and HTTP headers
// repeat what the handshake negotiated. [ParamFields] and [HeaderParams] read
// them.
//
// The package starts no goroutines and has no state except in a Stream, a Pipe
// or an EventReader, each for one reader. All input is bounded in size, depth
// and number. Package mcpclient uses it to talk to MCP servers, package
// mcpserver to talk to clients. Start reading at [Message] and [Decode].
package mcp
