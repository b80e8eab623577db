package control

import (
	"context"
	"net/http"
)

// Importer knows the servers that other programs on this machine use. Looking
// starts nothing and changes nothing.
type Importer interface {
	// Found lists the servers, and what could not be read.
	Found(ctx context.Context) ([]Candidate, []string, error)
	// Import writes the servers of those names into the configuration, with
	// their secrets beside it, and returns the names of what it took over, also
	// with an error that wraps ErrWritten.
	Import(ctx context.Context, names []string) ([]string, error)
}

// Candidate is a server of another program that can be taken over. It holds no
// secret.
type Candidate struct {
	Name    string   `json:"name"`   // as the other program has it
	As      string   `json:"as"`     // as it would be named here
	State   string   `json:"state"`  // new, same, differs, self
	Client  string   `json:"client"` // the program
	Path    string   `json:"path"`   // its file
	Starts  string   `json:"starts"` // the command with its arguments, or the address, secrets masked
	Notes   []string `json:"notes,omitempty"`
	Secrets []string `json:"secrets,omitempty"` // where there are some in plain text
}

func (c *Control) listImport(r *http.Request) (any, error) {
	found, problems, err := c.Importer.Found(r.Context())
	if err != nil {
		return nil, asInvalid(err)
	}
	// Empty lists rather than null.
	return map[string]any{"candidates": append([]Candidate{}, found...), "problems": append([]string{}, problems...)}, nil
}

// importServers takes {"names": ["…"]}, as listImport names them in "as".
func (c *Control) importServers(r *http.Request, in struct {
	Names []string `json:"names"`
}) (any, error) {
	added, err := c.Importer.Import(r.Context(), in.Names)
	if err := c.finishEdit(r, err, "server.import", nil, added...); err != nil {
		return nil, err
	}
	return map[string]any{"added": added}, nil
}
