// Package chat is the chat API: conversations with a model that uses the tools,
// over WebSocket and, through the same [Session], in a terminal.
//
// It promises that a conversation stays valid: every call of the model gets a
// result, whether the tool is unknown, refused, failing or cancelled, and the
// history in the store is one that every model accepts, after an abort and
// after a crash too. Every message to the clients of a session has a sequence
// number and is stored before it is sent, so that a client that reconnects, or
// another node, continues where it stopped. If the store fails, the message is
// sent all the same, with a warning in the log: it cannot be replayed. Slow
// clients are dropped; the conversation is not.
//
// The package calls no tool and no provider itself: calls go through the
// executor, models are llm's. docs/chat.md describes the protocol.
//
// # Design
//
// [Host] has the sessions of this process. A [Session] is idle, or has one turn
// (a reply in progress):
//
//	idle ──Send──► turn: model request ──► tool calls ──► model request … ──► idle
//	                 │ approvals and questions wait for a client's answer
//	                 └ Abort, a revoked credential, or no watcher for
//	                   disconnectGraceMs end it early
//
// After maxSteps, or the same call too often, the model gets one more request
// without tools. Host.StopWaiting ends the waits for a person when the gateway
// stops; the end of Host.Run ends every turn.
//
// Send stores the message and starts the turn on a goroutine (Session.run,
// then converse). converse alternates between ask (one streamed model request)
// and runCalls (tool calls in parallel, each on a goroutine). Another goroutine
// renews the lease of the turn. What goes to clients passes through the outbox;
// one goroutine (deliver) stores the events in order and hands them to the
// watchers. Each WebSocket connection has a reader and a writer goroutine and
// one Watcher with a bounded queue. A session with watchers on a shared store
// has one that follows other processes (forwardChanges).
//
// The process with the turn holds a lease of 1.5 seconds that it renews every
// half second. Other processes follow the session's events from the store and
// leave commands (abort, approve, answer) in it. A process that lost the lease
// stops its turn. When a process dies, the next one that opens or follows the
// session, or Host.Run on a store of its own, finds the expired lease and ends
// the turn with a valid history (endOrphanedReply, recover).
//
// The title, the model, the preferences, the pin and the profiles may be changed
// in any process, also while another one has the turn. So metadata is changed
// field by field (Session.save), and a process whose event numbers are taken
// forwards what the other one has sent and stores its own after it
// (storeMessages).
//
// Locks: Host.mu guards the set of sessions, Session.mu a session and its turn;
// they are taken in this order and not held during a query or a write to a
// client. Session.recordMu is held during queries, while the session is read
// again, its record is changed or the turn of a dead process is ended; it is
// taken before both.
//
// Start reading at Session.Send, converse and Session.emit.
package chat
