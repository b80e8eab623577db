package store

import (
	"context"
	"encoding/json"
	"time"

	"junctor/internal/tool"
)

// Catalogue is what one upstream offered when it was last seen, byte for
// byte, so that a restart serves its tools before the upstream answers.
type Catalogue struct {
	Server string

	// Config identifies the configuration of the upstream. A catalogue of
	// another configuration is not valid for this one.
	Config string

	Info     json.RawMessage // the server's name, version, protocol, capabilities, instructions
	Guidance tool.Guidance
	Tools    []json.RawMessage
	Seen     time.Time
}

// Catalogues keeps the catalogue last seen of every upstream.
type Catalogues interface {
	// PutCatalogue replaces the catalogue of c.Server.
	PutCatalogue(ctx context.Context, c Catalogue) error

	// Catalogues returns all catalogues, by server name.
	Catalogues(ctx context.Context) ([]Catalogue, error)
}

// Fingerprint is the history of one tool's definition. The first definition
// seen counts as approved; one that differs from the approved has changed.
type Fingerprint struct {
	Server string
	Tool   string

	First     string // fingerprint when the tool was first seen
	FirstSeen time.Time

	Current     string    // fingerprint when it was last seen
	CurrentSeen time.Time // when Current became what it is

	Approved   string // fingerprint that was agreed to
	ApprovedAt time.Time
	ApprovedBy string // Caller.ID; empty when it was approved by being the first

	// Definition is the approved definition, to show what changed.
	Definition json.RawMessage
}

// Changed reports whether the tool is not what was approved.
func (f Fingerprint) Changed() bool { return f.Current != f.Approved }

// Observation is one tool as an upstream offers it now.
type Observation struct {
	Tool        string
	Fingerprint string
	Definition  json.RawMessage
}

// Fingerprints remembers what every tool looked like.
type Fingerprints interface {
	// Observe notes what a server offers now and returns the fingerprints of
	// exactly those tools, in the same order.
	Observe(ctx context.Context, server string, seen []Observation) ([]Fingerprint, error)

	// Approve agrees to a definition; ErrConflict when it is no longer the
	// current one, ErrNotFound when the tool was never seen.
	Approve(ctx context.Context, server string, o Observation, by string) error

	// Fingerprints returns those of one server, or of all when server is
	// empty, by server and tool.
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
