// Package chat is the face for people: conversations with a model that uses
// the tools, over WebSocket and, through the same [Session], in a terminal.
//
// It promises that a conversation is never broken: every call that the model
// makes gets a result, whether the tool is unknown, refused, failing or
// cancelled, and the history in the store is one that every model accepts,
// after an abort and after a crash too. Every message that goes out has a
// number within its session and is in the store before it is sent, so that a
// connection that was lost, or another node, goes on where it stopped.
// Clients that are too slow are dropped; the conversation is not.
//
// The package calls no tool and no provider itself: calls take the
// executor's path, models are llm's. It declares the small interfaces it
// needs; app supplies them. docs/chat.md has the protocol.
package chat
