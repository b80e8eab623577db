// Package nodes lets the processes on one store speak with each other: short
// words to one or to all ([Node.Tell]), and conversations of two
// ([Node.Dial], [Node.Handle]), all by way of the store, so that nodes need
// no way to each other but their database.
//
// It promises that what is sent on a [Line] arrives once and in order, or the
// line ends; and that a line ends soon after the node at its other end has
// died. A word may be lost when the database is.
//
// It is no place for what must not be lost: that is kept in the store itself.
// Nor does it know what is said; [Node.Cluster] only lends its means to the
// MCP servers, which declare what they need.
package nodes
