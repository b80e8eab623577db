package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/guard"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// Reviews provides the changed definitions and approves them.
type Reviews interface {
	Changes(ctx context.Context, server string) ([]guard.Change, error)
	// Approve approves a definition; the catalogue is updated automatically.
	Approve(ctx context.Context, d tool.Definition, by string) error
}

// Change is a tool whose definition differs from the approved one.
type Change struct {
	Name        string             `json:"name"` // server:tool
	Server      string             `json:"server"`
	Tool        string             `json:"tool"`
	Fingerprint string             `json:"fingerprint"` // fingerprint of the current definition
	Since       time.Time          `json:"since"`       // when the current definition was first seen
	ApprovedAt  time.Time          `json:"approvedAt"`
	ApprovedBy  string             `json:"approvedBy,omitempty"` // name and id of the caller that approved it; absent if the first definition seen was approved automatically
	Offered     bool               `json:"offered"`              // the tool is in the catalogue, so the change can be approved
	Blocked     bool               `json:"blocked,omitempty"`    // calls are refused until the change is approved
	Flags       []string           `json:"flags,omitempty"`      // warnings about the definition
	Differences []guard.Difference `json:"differences,omitempty"`
}

// listChanges returns the changed tools and their differences.
func (c *Control) listChanges(r *http.Request) (any, error) {
	server := r.URL.Query().Get("server")
	if r.URL.Query().Has("wait") {
		var wait []string
		if server != "" {
			wait = []string{server}
		}
		c.Servers.Await(r.Context(), wait...)
	}
	caller := tool.CallerFrom(r.Context())
	if _, ok := c.Servers.StatusOf(server); server != "" && !ok {
		return nil, c.Tools.ServerNotFoundError(&caller, server)
	}
	changes, err := c.Reviews.Changes(r.Context(), server)
	if err != nil {
		return nil, err
	}
	list := []Change{}
	for _, ch := range changes {
		if _, ok := c.Servers.StatusOf(ch.Name.Server); !ok {
			continue // the server is no longer configured
		}
		v := Change{
			Name: ch.Name.String(), Server: ch.Name.Server, Tool: ch.Name.Tool, Fingerprint: ch.Print.Current,
			Since: ch.Print.CurrentSeen, ApprovedAt: ch.Print.ApprovedAt, ApprovedBy: ch.Print.ApprovedBy,
		}
		if e := c.Tools.Snapshot().Original(ch.Name); e != nil {
			v.Offered, v.Blocked, v.Flags = true, e.Review.Blocked, e.Warnings()
		}
		if ch.After != nil {
			v.Differences = guard.Diff(ch.Before, ch.After)
		}
		list = append(list, v)
	}
	return map[string]any{"changes": list}, nil
}

// approve approves current definitions of a server's tools. The body {}
// approves all changed ones; {"tools": {"read": "<fingerprint>"}} approves
// some, each with the fingerprint that was reviewed. An empty fingerprint
// means the current one.
func (c *Control) approve(r *http.Request, in struct {
	Tools map[string]string `json:"tools"`
}) (any, error) {
	name, caller := r.PathValue("name"), tool.CallerFrom(r.Context())
	server := c.Tools.Snapshot().Server(name)
	if server == nil {
		return nil, c.Tools.ServerNotFoundError(&caller, name)
	}
	for wanted := range in.Tools {
		if _, err := c.Tools.Snapshot().Resolve(&caller, name, wanted); err != nil {
			return nil, err
		}
	}
	approved := []string{}
	for _, e := range server.Tools {
		seen, named := in.Tools[e.Name.Tool]
		if len(in.Tools) > 0 && !named || !e.Review.Changed {
			continue
		}
		if err := c.approveTool(r.Context(), e, seen, caller.String()); err != nil {
			return nil, err
		}
		c.Audit(r.Context(), "definition.approve", e.Name.String(), map[string]any{"fingerprint": e.Fingerprint()})
		approved = append(approved, e.Name.String())
	}
	return map[string]any{"approved": approved}, nil
}

func (c *Control) approveTool(ctx context.Context, e *catalog.Entry, seen, by string) error {
	again := &tool.Error{
		Kind: tool.InvalidArguments,
		Msg:  fmt.Sprintf("%s has changed again since it was reviewed; review it again (junctor servers diff %s)", e.Name, e.Name.Server),
	}
	if cmp.Or(seen, e.Fingerprint()) != e.Fingerprint() {
		return again
	}
	err := c.Reviews.Approve(ctx, e.Definition, by)
	if errors.Is(err, store.ErrConflict) {
		return again
	}
	return err
}
