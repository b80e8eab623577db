package tool

import (
	"encoding/json"
	"slices"
)

// Interface has the members of the MCP Apps extension in a definition's
// _meta.ui. Members that do not have the type of the extension are ignored.
type Interface struct {
	Resource string // the URI of the user interface that shows results; "" for none
	AppsOnly bool   // the tool is for the user interfaces of its server, not for models
	NoApps   bool   // the tool is not for user interfaces
}

// Origin is who initiated a call.
type Origin int

// The origins.
const (
	ByModel  Origin = iota // a model, or unknown
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
		_ = json.Unmarshal(ui["resourceUri"], &i.Resource) // ignored if it is not a string
		var visibility []string
		if json.Unmarshal(ui["visibility"], &visibility) == nil && visibility != nil {
			i.AppsOnly = !slices.Contains(visibility, "model")
			i.NoApps = !slices.Contains(visibility, "app")
		}
	}
	if i.Resource == "" { // the key used by drafts of the extension
		_ = json.Unmarshal(members["ui/resourceUri"], &i.Resource)
	}
	return i
}
