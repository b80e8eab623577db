package toolsapi

import (
	"context"
	"net/http"
	"time"

	"junctor/internal/tool"
	"junctor/internal/upstream"
)

type healthBody struct {
	OK      bool           `json:"ok"`
	Version string         `json:"version,omitempty"`
	Servers []serverHealth `json:"servers"`
}

type serverHealth struct {
	Name   string         `json:"name"`
	Status upstream.State `json:"status"`
	Phase  string         `json:"phase,omitempty"`
	Tools  int            `json:"tools"`
	Since  *time.Time     `json:"since,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// health reports the state of the gateway and its upstreams. The status is
// always 200, because a disconnected upstream does not affect the gateway's
// health.
func (a *API) health(w http.ResponseWriter, r *http.Request) error {
	caller := tool.CallerFrom(r.Context())
	body := healthBody{OK: a.isHealthy(r.Context()), Version: a.Version, Servers: []serverHealth{}}
	for _, u := range a.Tools.Servers(&caller) {
		s := serverHealth{Name: u.Name, Status: u.State, Phase: u.Phase, Tools: u.Tools, Reason: u.Reason}
		if u.Known != nil {
			s.Tools = u.Enabled
		}
		if !u.Since.IsZero() {
			s.Since = &u.Since
		}
		body.Servers = append(body.Servers, s)
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

// isHealthy reports whether calls can be recorded.
func (a *API) isHealthy(ctx context.Context) bool { return a.Log.Available(ctx) == nil }

type probeBody struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// live reports that the process responds.
func (a *API) live(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, probeBody{OK: true})
	return nil
}

// ready reports whether the gateway accepts requests. It is not ready while
// records cannot be written, unless Open is set; the reason is only logged,
// because it contains paths and hosts.
func (a *API) ready(w http.ResponseWriter, r *http.Request) error {
	body := probeBody{OK: a.Ready()}
	if !body.OK {
		body.Reason = "the gateway is starting or stopping"
	} else if !a.isHealthy(r.Context()) {
		body.OK, body.Reason = a.Open, "calls cannot be recorded"
	}
	status := http.StatusOK
	if !body.OK {
		w.Header().Set("Retry-After", "1")
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, body)
	return nil
}
