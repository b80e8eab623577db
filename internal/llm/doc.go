// Package llm puts every model behind one small interface, [Model]: a request
// goes in, a stream of events comes out, and the last event is the whole turn.
//
// It promises that a turn which has been kept can be continued: each one
// carries the neutral form, which any provider understands, and beside it the
// provider's own ([Native]), with the thought signatures and encrypted
// reasoning that some refuse to go on without. It retries only before the
// first event, never after; it gives up on a provider that has gone silent;
// and its errors say what to do without showing a key.
//
// The subpackages openai, gemini and anthropic adapt the official SDKs;
// package models chooses among them. Tools are translated by
// internal/provider alone. Nothing here reads the environment or calls a tool.
package llm
