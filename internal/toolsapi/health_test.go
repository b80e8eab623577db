package toolsapi

import (
	"encoding/json"
	"strings"
	"testing"

	"junctor/internal/listing"
)

func TestHealth(t *testing.T) {
	ts := standard(t)
	res := get(t, ts.URL+"/health")
	var body struct {
		OK      bool
		Version string
		Servers []struct {
			Name, Status string
			Tools        int
		}
	}
	if err := json.Unmarshal(res.body, &body); err != nil || res.status != 200 || !body.OK || body.Version != "1.2.3" || len(body.Servers) != 2 || body.Servers[0].Name != "files" || body.Servers[0].Status != "connected" || body.Servers[0].Tools != 4 {
		t.Errorf("%d %+v %v", res.status, body, err)
	}
	if res := get(t, ts.URL+"/health", "X-Caller", "nobody"); strings.Contains(string(res.body), "files") || res.status != 200 {
		t.Errorf("nobody sees %s", res.body)
	}
	for _, path := range []string{"/health/live", "/health/ready"} {
		if res := get(t, ts.URL+path); res.status != 200 || strings.TrimSpace(string(res.body)) != `{"ok":true}` {
			t.Errorf("%s: %d %s", path, res.status, res.body)
		}
	}
}

func TestHealthReportsProblems(t *testing.T) {
	ready := true
	_, ts := gateway(t, nil, func(o *Options, _ *listing.Options) {
		o.Log = brokenLog{o.Log}
		o.Ready = func() bool { return ready }
	})
	if res := get(t, ts.URL+"/health"); res.status != 200 || !strings.Contains(string(res.body), `"ok":false`) {
		t.Errorf("health: %d %s", res.status, res.body)
	}
	if res := get(t, ts.URL+"/health/live"); res.status != 200 {
		t.Errorf("live: %d", res.status)
	}
	if res := get(t, ts.URL+"/health/ready"); res.status != 503 || res.header.Get("Retry-After") == "" {
		t.Errorf("ready: %d", res.status)
	}
	for _, accept := range []string{"application/json", "text/event-stream"} {
		res := get(t, ts.URL+"/logs?limit=1", "Accept", accept)
		if res.status != 500 || res.code(t) != "INTERNAL" || strings.Contains(string(res.body), "secret") {
			t.Errorf("logs: %d %s", res.status, res.body)
		}
	}
	if res := get(t, ts.URL+"/tools"); strings.TrimSpace(string(res.body)) != `{"tools":[]}` {
		t.Errorf("tools: %s", res.body)
	}
}
