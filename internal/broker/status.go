package broker

import (
	"net/http"
	"time"

	"junctor/internal/tool"
)

// ProxyStatus is the state of a proxied server.
type ProxyStatus struct {
	Name             string     `json:"name"`
	IsProxy          bool       `json:"isProxy"` // the proxy is enabled for the server
	TargetURL        string     `json:"targetUrl"`
	IsAuthorized     bool       `json:"isAuthorized"`      // no sign-in is required now
	HasToken         bool       `json:"hasToken"`          // a token is configured or stored
	LastProxyRequest *time.Time `json:"lastProxyRequest"`  // when the last proxied request arrived; null if there was none
	ProxyRequests    int64      `json:"proxyRequestCount"` // number of proxied requests
}

// status returns the state of one proxied upstream.
func (b *Broker) status(r *http.Request) (any, error) {
	t, err := b.target(r)
	if err != nil {
		return nil, err
	}
	u := b.usage(t.Name)
	return ProxyStatus{t.Name, t.Proxy, t.URL, t.Authorized, t.HasToken, moment(u.last), u.count}, nil
}

// Connection is a server in the list of all servers.
type Connection struct {
	Name           string            `json:"name"`
	Type           string            `json:"type"`
	IsAvailable    bool              `json:"isAvailable"`    // the server is connected
	IsProxy        bool              `json:"isProxy"`        // the proxy is enabled for the server
	ProxyEndpoints []string          `json:"proxyEndpoints"` // paths of the proxy; empty if it is not enabled
	Details        ConnectionDetails `json:"details"`
}

// ConnectionDetails contains further properties of a Connection.
type ConnectionDetails struct {
	TargetURL      string     `json:"targetUrl"`
	LastAuthorized *time.Time `json:"lastAuthorized"` // when the sign-in took place; null if there was none
}

func (b *Broker) connections(r *http.Request) (any, error) {
	caller := tool.CallerFrom(r.Context())
	list := []Connection{}
	for _, t := range b.opts.Targets.Targets(caller.ID) {
		if !caller.MaySee(t.Name) {
			continue
		}
		c := Connection{
			Name: t.Name, Type: "mcp-server", IsAvailable: t.Available, IsProxy: t.Proxy, ProxyEndpoints: []string{},
			Details: ConnectionDetails{t.URL, moment(t.LastAuthorized)},
		}
		if t.Proxy {
			c.ProxyEndpoints = []string{"/api/mcp/" + t.Name + "/proxy"}
		}
		list = append(list, c)
	}
	return map[string]any{"connections": list}, nil
}

// moment returns nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
