package store

import (
	"context"
	"encoding/json"
	"time"

	"junctor/internal/tool"
)

// Catalogue is what one upstream offered when it was last connected, byte for
// byte, so that after a restart its tools are served before it responds.
type Catalogue struct {
	Server string

	// Config identifies the configuration of the upstream. A catalogue is valid
	// only for the configuration that it was read with.
	Config string

	Info     json.RawMessage // the server's name, version, protocol, capabilities, instructions
	Guidance tool.Guidance
	Tools    []json.RawMessage
	Seen     time.Time
}

// Catalogues stores the latest catalogue of every upstream.
type Catalogues interface {
	// PutCatalogue replaces the catalogue of c.Server.
	PutCatalogue(ctx context.Context, c Catalogue) error

	// Catalogues returns all catalogues, by server name.
	Catalogues(ctx context.Context) ([]Catalogue, error)
}

// Fingerprint is the history of one tool's definition. The first definition
// seen counts as approved; a definition that differs from the approved one has
// changed.
type Fingerprint struct {
	Server string
	Tool   string

	First     string // fingerprint when the tool was first seen
	FirstSeen time.Time

	Current     string    // fingerprint when it was last seen
	CurrentSeen time.Time // when the tool was first seen with Current

	Approved   string // fingerprint that was approved
	ApprovedAt time.Time
	ApprovedBy string // name and ID of the caller; empty if approved as the first one seen

	// Definition is the approved definition, to show what changed.
	Definition json.RawMessage
}

// Changed reports whether the current definition differs from the approved one.
func (f Fingerprint) Changed() bool { return f.Current != f.Approved }

// Observation is one tool as an upstream offers it now.
type Observation struct {
	Tool        string
	Fingerprint string
	Definition  json.RawMessage
}

// Fingerprints stores the fingerprint of every tool.
type Fingerprints interface {
	// Observe records the tools that a server offers now and returns their
	// fingerprints, in the same order.
	Observe(ctx context.Context, server string, seen []Observation) ([]Fingerprint, error)

	// Approve approves a definition; ErrConflict when it is no longer the
	// current one, ErrNotFound when the tool was never seen.
	Approve(ctx context.Context, server string, o Observation, by string) error

	// Fingerprints returns the fingerprints of one server, or of all servers
	// if server is empty, by server and tool.
	Fingerprints(ctx context.Context, server string) ([]Fingerprint, error)
}

// MatchFingerprints returns the fingerprints of the tools seen, in their order,
// and whether all of them are stored with the definition that was seen.
func MatchFingerprints(all []Fingerprint, seen []Observation) (out []Fingerprint, same bool) {
	byTool := make(map[string]Fingerprint, len(all))
	for _, f := range all {
		byTool[f.Tool] = f
	}
	out, same = make([]Fingerprint, len(seen)), true
	for i, o := range seen {
		f, ok := byTool[o.Tool]
		out[i] = f
		same = same && ok && f.Current == o.Fingerprint
	}
	return out, same
}
