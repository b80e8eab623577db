package tool

import (
	"encoding/json"
	"slices"
)

// Interface is what a definition says of MCP Apps, in its _meta.ui. Members of
// another form than the extension has are ignored.
type Interface struct {
	Resource string // the URI of the user interface that shows results; "" for none
	AppsOnly bool   // the tool is for the user interfaces of its server, not for models
	NoApps   bool   // the tool is not for user interfaces
}

// Origin is who decided on a call.
type Origin int

// The origins.
const (
	ByModel  Origin = iota // a model, as far as is known
	ByApp                  // a user interface of the tool's own server
	ByClient               // a person, or a client that applies the visibility of tools itself
)

// Allows reports whether the tool may be called by the origin.
func (i Interface) Allows(o Origin) bool {
	return !(o == ByModel && i.AppsOnly || o == ByApp && i.NoApps)
}

// readInterface reads the _meta of a definition.
func readInterface(meta json.RawMessage) (i Interface) {
	var members map[string]json.RawMessage
	if len(meta) == 0 || json.Unmarshal(meta, &members) != nil {
		return i
	}
	var ui map[string]json.RawMessage
	if json.Unmarshal(members["ui"], &ui) == nil {
		_ = json.Unmarshal(ui["resourceUri"], &i.Resource) // not a string: as if it were not there
		var visibility []string
		if json.Unmarshal(ui["visibility"], &visibility) == nil && visibility != nil {
			i.AppsOnly = !slices.Contains(visibility, "model")
			i.NoApps = !slices.Contains(visibility, "app")
		}
	}
	if i.Resource == "" { // the name before the extension was released
		_ = json.Unmarshal(members["ui/resourceUri"], &i.Resource)
	}
	return i
}
