package control

import (
	"context"
	"net/http"

	"junctor/internal/httperr"
)

// Importer knows the servers that other programs on this machine use. Looking
// starts nothing and changes nothing.
type Importer interface {
	// Found lists the servers, and what could not be read.
	Found(ctx context.Context) ([]Candidate, []string, error)
	// Import writes the servers of those names into the configuration, with
	// their secrets beside it, and returns the names of what it took over.
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

func (c *Control) listImport(w http.ResponseWriter, r *http.Request) {
	found, problems, err := c.Importer.Found(r.Context())
	if err != nil {
		httperr.Write(w, r, asInvalid(err))
		return
	}
	// Empty lists rather than null.
	answer(w, map[string]any{"candidates": append([]Candidate{}, found...), "problems": append([]string{}, problems...)})
}

// importServers takes {"names": ["…"]}, as listImport names them in "as".
func (c *Control) importServers(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Names []string `json:"names"`
	}
	if err := c.read(w, r, &in); err != nil {
		httperr.Write(w, r, err)
		return
	}
	added, err := c.Importer.Import(r.Context(), in.Names)
	if err != nil {
		httperr.Write(w, r, asInvalid(err))
		return
	}
	for _, name := range added {
		c.Audit(r.Context(), "server.import", name, nil)
	}
	answer(w, map[string]any{"added": added})
}
