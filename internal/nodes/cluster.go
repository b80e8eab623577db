package nodes

import (
	"context"
	"errors"
	"time"

	"junctor/internal/mcpserver"
	"junctor/internal/store"
)

// sessionSpace is the space of the sessions of MCP clients in the store.
const sessionSpace = "mcp-sessions"

// Cluster returns what the MCP servers of this process need to share sessions
// with those of other nodes.
func (n *Node) Cluster() mcpserver.Cluster { return cluster{n} }

type cluster struct{ *Node }

func (c cluster) Session(ctx context.Context, id string) ([]byte, error) {
	v, err := c.opts.Store.Value(ctx, sessionSpace, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return v.Data, err
}

func (c cluster) PutSession(ctx context.Context, id string, record []byte, ttl time.Duration, fresh bool) error {
	version := store.AnyVersion
	for {
		if !fresh {
			v, err := c.opts.Store.Value(ctx, sessionSpace, id)
			if errors.Is(err, store.ErrNotFound) {
				return mcpserver.ErrNoSession
			}
			if err != nil {
				return err
			}
			version = v.Version
		}
		_, err := c.opts.Store.PutValue(ctx, store.Value{Space: sessionSpace, Name: id, Data: record, Expires: time.Now().Add(ttl)}, version)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		// A concurrent write or deletion changed the version: retry.
	}
}

func (c cluster) DropSession(ctx context.Context, id string) error {
	return c.opts.Store.DeleteValue(ctx, sessionSpace, id, store.AnyVersion)
}

func (c cluster) Dial(ctx context.Context, to, kind string, first []byte) (mcpserver.NodeConn, error) {
	l, err := c.Node.Dial(ctx, to, kind, first)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (c cluster) Handle(kind string, h func(ctx context.Context, first []byte, l mcpserver.NodeConn)) {
	if h == nil {
		c.Node.Handle(kind, nil)
		return
	}
	c.Node.Handle(kind, func(ctx context.Context, first []byte, l *Conn) { h(ctx, first, l) })
}
