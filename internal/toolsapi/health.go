package toolsapi

import (
	"context"
	"net/http"
	"time"

	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// storeWithin is how long the store may take to answer and count as well.
const storeWithin = 2 * time.Second

type healthBody struct {
	OK      bool           `json:"ok"`
	Version string         `json:"version,omitempty"`
	Servers []serverHealth `json:"servers"`
}

type serverHealth struct {
	Name    string         `json:"name"`
	Status  upstream.State `json:"status"`
	Tools   int            `json:"tools"`
	Since   *time.Time     `json:"since,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	AuthURL string         `json:"authUrl,omitempty"`
}

// health says how the gateway and its upstreams are. It is always 200: an
// upstream that is down does not make the gateway unwell.
func (a *API) health(w http.ResponseWriter, r *http.Request) {
	caller := tool.CallerFrom(r.Context())
	body := healthBody{OK: a.well(r.Context()), Version: a.Version, Servers: []serverHealth{}}
	snap := a.Catalog.Snapshot()
	for _, u := range a.Servers.Status() {
		if !caller.MaySee(u.Name) {
			continue
		}
		s := serverHealth{Name: u.Name, Status: u.State, Tools: u.Tools, Reason: u.Reason, AuthURL: u.AuthURL}
		if known := snap.Server(u.Name); known != nil {
			s.Tools = known.EnabledTools()
		}
		if !u.Since.IsZero() {
			s.Since = &u.Since
		}
		body.Servers = append(body.Servers, s)
	}
	writeJSON(w, http.StatusOK, body)
}

// well reports whether the gateway can do its own part: without the store no
// call can be recorded, and so none is made.
func (a *API) well(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	_, err := a.Log.LastSeq(ctx)
	return err == nil
}

type probeBody struct {
	OK bool `json:"ok"`
}

// live says that the process answers.
func (a *API) live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, probeBody{true})
}

// ready says whether requests should come here.
func (a *API) ready(w http.ResponseWriter, r *http.Request) {
	if a.Ready() && (a.Open || a.well(r.Context())) {
		writeJSON(w, http.StatusOK, probeBody{true})
		return
	}
	w.Header().Set("Retry-After", "1")
	writeJSON(w, http.StatusServiceUnavailable, probeBody{false})
}
