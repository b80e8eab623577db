// Package llm provides access to language models through one small interface,
// [Model]: it accepts a request and returns a stream of events, the last of
// which is the complete turn.
//
// A stored turn can always be continued. It contains a neutral form, which
// works with any provider, and the provider's own form ([Native]) with the
// thought signatures and encrypted reasoning that some providers require.
// Requests are retried only before the first event. A provider that sends
// nothing for too long causes a timeout. Errors describe what to do and never
// contain a key.
//
// The subpackages openai, gemini and anthropic adapt the official SDKs; package
// models selects one of them. Tools are translated by internal/provider only.
// Nothing here reads the environment or calls a tool.
package llm
