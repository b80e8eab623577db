// Package nodes connects the processes on one store: messages to one node or
// to all ([Node.Publish], [Node.Subscribe]), connections between two nodes
// ([Node.Dial], [Node.Handle]), and requests to servers that only one node
// runs ([Node.Singletons]). Everything goes through the store, so nodes need
// no network path to each other.
//
// Messages on a [Conn] arrive exactly once and in order, or the connection
// ends. It also ends soon after the node at the other end has died. A
// published message may be lost. Data that must not be lost is kept in the
// store itself.
//
// # Design
//
// A node acquires a lease, which it renews as a heartbeat, and then registers
// in a list (Values): a node in the list without a lease is dead. A node that
// finds the lease of another one expired, by the database's clock, closes its
// connections to that node.
//
// A frame is a row in the receiver's queue (store.NodeMessages). Senders queue
// frames per receiver; one goroutine at a time writes them in batches. The
// receiver reads its queue when the store announces a change. For a second
// after it has sent or received something it also polls every 1 to 16 ms.
// Frames of a connection are numbered: a duplicate is dropped, a gap ends the
// connection.
//
// A Conn is open from Dial or the opening frame until one side closes it, a
// frame is missing, 64 MiB are waiting to be received, the other node is dead,
// or the store accepts nothing for ten seconds. What was received before the
// end can still be read.
//
// A forwarded request (singletons.go) has its own connection, on which the
// request, its notifications, the questions to the caller and the response are
// MCP messages. Closing the connection cancels the request. Package mcpserver
// uses connections for streams and parked calls of other nodes.
//
// Goroutines of Run: heartbeat (only renews the lease, so that no slow query
// makes a live node look dead), watch (registers this node and checks the
// leases of its peers), read (reads the queue and calls subscribers, which
// must not block), list (reads the list of nodes). Sending goroutines exit
// when their queue is empty. Each handler runs on its own goroutine, with a
// context that is canceled when the connection ends. A forwarded request has
// one more goroutine on the node that executes it, which receives the answers
// to questions, and one for each question on the caller's node.
//
// Locks: Node.mu guards all maps and is never held during a query. Each Conn
// has its own lock, under which it queues frames (Conn.mu before Node.mu,
// never the reverse). Singletons.mu and questions.mu are not held together
// with another lock.
//
// A node that stops closes its connections, sends what is queued and marks
// itself as left. When a node dies, the connections to it end within its lease
// of five seconds plus the time between two checks, which is at most three
// seconds. A request that it was executing fails with an error that tells that
// it may have been executed; one that had not been sent fails with
// tool.ErrDown and may be retried. The leases of its singletons expire within
// ten seconds, and another node, which tries every two, starts them.
//
// While the database is unavailable, sends are retried for ten seconds; then
// the connections end with ErrUnavailable. Decision 0005 explains why nodes
// communicate through the store.
//
// Start reading at Node.Run, Node.send, Conn.Receive and Singletons.Do.
package nodes
