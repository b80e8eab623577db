package authserver

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	maxDocument   = 16 << 10
	documentTTL   = 15 * time.Minute
	documentRetry = 30 * time.Second // after a failure
	maxDocuments  = 500
)

// documents caches clients that are described by a client id metadata
// document.
type documents struct {
	mu    sync.Mutex
	known map[string]knownDocument
}

type knownDocument struct {
	client client
	err    *protocolError
	until  time.Time
}

// get returns the client that a metadata document describes.
func (d *documents) get(ctx context.Context, s *Server, id string) (client, *protocolError) {
	u, err := url.Parse(id)
	if err != nil || s.opts.Fetch == nil || !isPlain(id) || !isPlain(u.Host) || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || strings.Trim(u.Path, "/") == "" || strings.Contains(u.Path+"/", "/../") {
		return client{}, invalid("invalid_client", "client_id is not the URL of a client id metadata document: it must be https, with a path, without a fragment, in ASCII")
	}
	now := s.now()
	d.mu.Lock()
	k, ok := d.known[id]
	d.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.client, k.err
	}
	if !s.limits.fetch() {
		return client{}, &protocolError{code: "temporarily_unavailable", text: "too many client id metadata documents are being read; try again in a minute"}
	}
	k = knownDocument{until: now.Add(documentTTL)}
	if k.client, k.err = s.readDocument(ctx, id, u.Host); k.err != nil {
		k.until = now.Add(documentRetry)
		if ctx.Err() != nil {
			return k.client, k.err // not an error of the document
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil || len(d.known) >= maxDocuments {
		d.known = map[string]knownDocument{}
	}
	d.known[id] = k
	return k.client, k.err
}

func (s *Server) readDocument(ctx context.Context, id, host string) (client, *protocolError) {
	body, err := s.opts.Fetch(ctx, id, maxDocument)
	if err != nil {
		s.log.WarnContext(ctx, "cannot read the client id metadata document", "client", id, "err", err)
		return client{}, invalid("invalid_client", "the client id metadata document cannot be read: it must be JSON of at most 16 KB at a public https address, without a redirect")
	}
	var m struct {
		registration
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return client{}, invalid("invalid_client", "the client id metadata document is not the expected JSON object")
	}
	if m.ID != id {
		return client{}, invalid("invalid_client", "the client id metadata document belongs to a different client: its client_id must be its own URL")
	}
	if m.Secret != "" || m.Method != "" && m.Method != "none" {
		return client{}, invalid("invalid_client", "the client id metadata document asks for a client secret; only public clients (token_endpoint_auth_method none) are supported")
	}
	if e := m.check(); e != nil {
		return client{}, e
	}
	return client{ID: id, Name: clientName(m.Name, host), Redirects: m.Redirects}, nil
}
