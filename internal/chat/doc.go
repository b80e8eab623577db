// Package chat is the chat API: conversations over WebSocket with a model that
// uses the tools.
//
// It promises that a conversation stays valid: every call of the model gets a
// result, whether the tool is unknown, refused, failing or cancelled, and the
// stored history is one that every model accepts, even after an abort or a
// crash. Every message to the clients of a session has a sequence number and is
// stored before it is sent, so that a client that reconnects, or another node,
// continues where it stopped. If the store fails, the message is sent anyway
// and a warning is logged: it cannot be replayed. Slow clients are
// disconnected; the conversation continues.
//
// The package itself calls neither tools nor providers: calls go through the
// executor, requests to models through package llm. docs/chat.md describes the
// protocol.
//
// # Design
//
// [Host] holds the sessions loaded in this process. A [Session] is idle, or has
// one turn (a reply in progress):
//
//	idle ──Send──► turn: model request ──► tool calls ──► model request … ──► idle
//	                 │ approvals and questions wait for a client's answer
//	                 └ Abort, a revoked credential, or no watcher for
//	                   disconnectGraceMs end it early
//
// After maxSteps model requests, or maxIdenticalCalls identical calls, the
// model gets one more request without tools. Host.StopWaiting ends the turns
// that wait for a person when the gateway stops; the end of Host.Run ends every
// turn.
//
// Send stores the message and starts the turn on a goroutine (Session.run, then
// converse). converse alternates between ask (one streamed model request) and
// runCalls (tool calls in parallel, each on a goroutine). Another goroutine
// renews the lease of the turn. Messages to clients pass through the outbox;
// one goroutine (deliver) stores them in order and hands them to the watchers.
// Each WebSocket connection has a reader and a writer goroutine and one Watcher
// with a bounded queue. On a shared store, a session with watchers has a
// goroutine that follows other processes (forwardChanges).
//
// The process with the turn holds a lease of 1.5 seconds that it renews every
// half second. Other processes follow the session's events in the store and
// send commands (abort, approve, answer) through it. A process that has lost
// the lease stops its turn. When a process dies, the next one that opens or
// follows the session, or Host.Run if the store is not shared, finds the
// expired lease and ends the turn with a valid history (endOrphanedReply,
// recover).
//
// Any process may change the title, the model, the preferences, the pin and the
// profiles, even while another one has the turn. So metadata is changed field
// by field (Session.save). A process whose event numbers are already used first
// forwards the other process's events and then stores its own (storeMessages).
//
// Locks: Host.mu guards the set of sessions, Session.mu a session and its turn;
// they are acquired in this order and not held during a query or a write to a
// client. Session.recordMu is held during queries, while the session is
// reloaded, its record is changed or the turn of a dead process is ended; it is
// acquired before both.
//
// Start reading at Session.Send, converse and Session.emit.
package chat
