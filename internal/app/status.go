package app

import (
	"context"
	"os"
	"time"

	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Status is the state of the gateway, for the page, the command line and the
// built-in status tool. It contains no secrets and no paths.
type Status struct {
	Version string         `json:"version"`
	Node    string         `json:"node"`
	PID     int            `json:"pid"`
	Started time.Time      `json:"started"`
	Uptime  int64          `json:"uptimeSeconds"`
	Tools   int            `json:"tools"`
	Catalog uint64         `json:"catalog"` // changes with every change of a tool
	Servers []ServerStatus `json:"servers"`
}

// ServerStatus is the state of one upstream.
type ServerStatus struct {
	Name   string         `json:"name"`
	Status upstream.State `json:"status"`
	Tools  int            `json:"tools"`
	Reason string         `json:"reason,omitempty"`
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
