package broker

import (
	"encoding/json"
	"net/http"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/tool"
)

// status answers with the state of one proxied upstream.
func (b *Broker) status(w http.ResponseWriter, r *http.Request) {
	t, err := b.target(r)
	if err != nil {
		httperr.Write(w, r, err)
		return
	}
	u := b.usage(t.Name)
	answerJSON(w, struct {
		Name             string     `json:"name"`
		IsProxy          bool       `json:"isProxy"`
		TargetURL        string     `json:"targetUrl"`
		IsAuthorized     bool       `json:"isAuthorized"`
		HasToken         bool       `json:"hasToken"`
		LastProxyRequest *time.Time `json:"lastProxyRequest"`
		ProxyRequests    int64      `json:"proxyRequestCount"`
	}{t.Name, t.Proxy, t.URL, t.Authorized, t.HasToken, moment(u.last), u.count})
}

// connection is one upstream in the list of all.
type connection struct {
	Name           string            `json:"name"`
	Type           string            `json:"type"`
	IsAvailable    bool              `json:"isAvailable"`
	IsProxy        bool              `json:"isProxy"`
	ProxyEndpoints []string          `json:"proxyEndpoints"`
	Details        connectionDetails `json:"details"`
}

type connectionDetails struct {
	TargetURL      string     `json:"targetUrl"`
	LastAuthorized *time.Time `json:"lastAuthorized"`
}

func (b *Broker) connections(w http.ResponseWriter, r *http.Request) {
	caller := tool.CallerFrom(r.Context())
	list := []connection{}
	for _, t := range b.opts.Targets.Targets(caller.ID) {
		if !caller.MaySee(t.Name) {
			continue
		}
		c := connection{
			Name: t.Name, Type: "mcp-server", IsAvailable: t.Available, IsProxy: t.Proxy, ProxyEndpoints: []string{},
			Details: connectionDetails{t.URL, moment(t.LastAuthorized)},
		}
		if t.Proxy {
			c.ProxyEndpoints = []string{"/api/mcp/" + t.Name + "/proxy"}
		}
		list = append(list, c)
	}
	answerJSON(w, map[string]any{"connections": list})
}

// moment is null for a time that never was.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // the values here always marshal
}
