// Package nodes connects the processes on one store: messages to one node or to
// all ([Node.Publish], [Node.Subscribe]), connections between two ([Node.Dial],
// [Node.Handle]), and requests to servers that only one node runs
// ([Node.Singletons]). All of it goes through the store, so that nodes need no
// network path to each other but their database.
//
// It promises that messages on a [Conn] arrive once and in order, or the
// connection ends; and that it ends soon after the node at its other end has
// died. A published message may be lost. What must not be lost is kept in the
// store itself.
//
// # Design
//
// A node takes a lease, which it renews as a heartbeat, and then registers in a
// list (Values): a node in the list without a lease is dead. Another node that
// finds the lease expired by the database's clock closes its connections to the
// dead one.
//
// A frame is a row in the receiver's queue (store.NodeMessages). Senders queue
// frames per receiver; one goroutine at a time writes a batch. The receiver
// reads its queue when the store announces a change, and polls every 1 to 16 ms
// for a second after it has sent or received something. Frames of a connection
// are numbered: a duplicate is dropped, a gap ends the connection.
//
// A Conn is open from Dial or the opening frame until one side closes it, a
// frame is missing, 64 MiB wait to be received, the other node is dead, or the
// store accepts nothing for ten seconds. What was received before the end can
// still be read.
//
// A forwarded request (singletons.go) has a connection of its own, on which the
// request, its notifications, the questions to the caller and the response are
// MCP messages. Closing the connection cancels the request. Package mcpserver
// uses connections for streams and parked calls of other nodes.
//
// Goroutines of Run: heartbeat (renews the lease and does nothing else, so that
// no slow query makes a living node look dead), watch (registers this node and
// checks the leases of its peers), read (reads the queue and calls subscribers,
// which must not block), list (reads the list of nodes). Goroutines that send
// live until their queue is empty. Handlers run on goroutines of their own, with
// a context that ends with the connection. A forwarded request has one more on
// the node that executes it, which receives the answers to questions, and one
// for each question on the node of the caller.
//
// Locks: Node.mu guards all maps and is never held during a query. Conn has a
// lock of its own, under which it queues frames (Conn.mu before Node.mu, never
// the reverse). Singletons.mu and the lock of the questions are taken alone.
//
// A node that stops closes its connections, sends what is queued and marks itself
// as left. When a node dies, the connections to it end within its lease of five
// seconds and the time between two checks, which is three seconds at most. A
// request that it was executing fails with an error that says that it may have
// been executed; one that had not been sent fails with tool.ErrDown and may be
// retried. The leases of its singletons expire within ten seconds, and another
// node, which tries every two, starts them.
//
// When the database is unavailable, sends are retried for ten seconds, then the
// connections end with ErrUnavailable. Decision 0005 explains why nodes communicate
// through the store.
//
// Start reading at Node.Run, Node.send, Conn.Receive and Singletons.Do.
package nodes
