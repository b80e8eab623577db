// Package nodes connects the processes on one store: messages to one node or to
// all ([Node.Publish], [Node.Subscribe]) and connections between two
// ([Node.Dial], [Node.Handle]), both through the store, so that nodes need no
// network path to each other but their database.
//
// It promises that messages on a [Conn] arrive once and in order, or the
// connection ends; and that it ends soon after the node at its other end has
// died. A published message may be lost with the database. What must not be
// lost is kept in the store itself.
//
// # Design
//
// A node registers in a list (Values) and holds a lease that it renews as a
// heartbeat. Another node that finds the lease expired by the database's clock
// treats it as dead and closes the connections to it.
//
// A frame is a row in the receiver's queue (store.NodeMessages). Senders queue
// frames per receiver; one goroutine at a time writes a batch. The receiver
// reads its queue when the store announces a change, and polls every 4 to 130 ms
// while a connection is open. Frames of a connection are numbered: a duplicate
// is dropped, a gap ends the connection.
//
// Goroutines of Run: heartbeat (renews the lease and does nothing else, so that
// no slow query makes a living node look dead), watch (checks peers), read
// (reads the queue), list (the list of nodes). Handlers run on goroutines of their
// own, with a context that ends with the connection.
//
// Locks: Node.mu guards all maps and is never held during a query. Conn has a
// lock of its own; the two are never held together.
//
// When the database is unavailable, sends are retried for ten seconds, then the
// connections end with ErrGone. Decision 0005 explains why nodes communicate
// through the store.
//
// Start reading at Node.Run, Node.send and Conn.Receive.
package nodes
