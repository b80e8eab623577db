package control

import (
	"context"
	"net/http"
)

// Importer finds and imports servers that other programs on this machine use.
// Finding them starts nothing and changes nothing.
type Importer interface {
	// Found lists the servers, and what could not be read.
	Found(ctx context.Context) ([]Candidate, []string, error)
	// Import adds the named servers to the configuration, with their secrets
	// in a separate file. It returns the names of the imported servers, even
	// with an error that wraps ErrWritten.
	Import(ctx context.Context, names []string) ([]string, error)
}

// Candidate is a server that can be imported from another program. It contains
// no secrets.
type Candidate struct {
	Name    string   `json:"name"`   // name in the other program
	As      string   `json:"as"`     // name that the server would get in Junctor
	State   string   `json:"state"`  // new, same, differs or self
	Client  string   `json:"client"` // name of the other program
	Path    string   `json:"path"`   // path of the other program's file
	Starts  string   `json:"starts"` // command with its arguments, or URL, with secrets masked
	Notes   []string `json:"notes,omitempty"`
	Secrets []string `json:"secrets,omitempty"` // locations of secrets stored as plain text
}

func (c *Control) listImport(r *http.Request) (any, error) {
	found, problems, err := c.Importer.Found(r.Context())
	if err != nil {
		return nil, asInvalid(err)
	}
	// Empty lists rather than null.
	return map[string]any{"candidates": append([]Candidate{}, found...), "problems": append([]string{}, problems...)}, nil
}

// importServers accepts {"names": ["…"]}, with the names in "as" from
// listImport.
func (c *Control) importServers(r *http.Request, in struct {
	Names []string `json:"names"`
}) (any, error) {
	added, err := c.Importer.Import(r.Context(), in.Names)
	if err := c.finishEdit(r, err, "server.import", nil, added...); err != nil {
		return nil, err
	}
	return map[string]any{"added": added}, nil
}
