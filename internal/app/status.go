package app

import (
	"context"
	"os"
	"time"

	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Status is the state of the gateway, for the page, the command line and the
// built-in status tool. It contains no secrets or paths.
type Status struct {
	Version string         `json:"version"`
	Node    string         `json:"node"` // the name of this gateway process
	PID     int            `json:"pid"`
	Started time.Time      `json:"started"`
	Uptime  int64          `json:"uptimeSeconds"` // in seconds
	Tools   int            `json:"tools"`         // number of tools in the catalogue
	Catalog uint64         `json:"catalog"`       // version of the catalogue; increases when a tool changes
	Servers []ServerStatus `json:"servers"`
}

// ServerStatus is the state of one server.
type ServerStatus struct {
	Name   string         `json:"name"`
	Status upstream.State `json:"status"`
	Tools  int            `json:"tools"`            // number of tools
	Reason string         `json:"reason,omitempty"` // why the server is not connected; absent if it is
}

func (a *App) status(ctx context.Context) any {
	caller := tool.CallerFrom(ctx)
	s := Status{
		Version: a.opts.Version, Node: a.node, PID: os.Getpid(), Started: a.begun,
		Uptime: int64(time.Since(a.begun).Seconds()), Catalog: a.catalog.Snapshot().Version, Servers: []ServerStatus{},
	}
	for _, u := range a.tools.Servers(&caller) {
		s.Tools += u.Tools
		s.Servers = append(s.Servers, ServerStatus{u.Name, u.State, u.Tools, u.Reason})
	}
	return s
}
