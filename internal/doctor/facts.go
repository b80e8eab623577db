package doctor

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"junctor/internal/apiclient"
	"junctor/internal/clients"
	"junctor/internal/control"
	"junctor/internal/terminal"
	"junctor/internal/tool"
)

// Ask requests the facts that only a gateway has.
func (f *Facts) Ask(ctx context.Context, g apiclient.Client) error {
	var servers struct {
		Servers []control.Server `json:"servers"`
	}
	if err := g.Get(ctx, "/api/servers", url.Values{"wait": {""}}, &servers); err != nil {
		return err
	}
	f.Servers = servers.Servers
	var raw struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := g.Get(ctx, "/tools", nil, &raw); err != nil {
		return err
	}
	for _, r := range raw.Tools {
		var of struct {
			Server string `json:"server"`
		}
		if json.Unmarshal(r, &of) != nil {
			continue
		}
		if d, err := tool.ParseDefinition(of.Server, r); err == nil { // the gateway reports invalid definitions as problems of the server
			f.Tools = append(f.Tools, d)
		}
	}
	var changed control.ToolList
	if err := g.Get(ctx, "/api/tools", url.Values{"state": {"changed"}}, &changed); err != nil {
		return err
	}
	for _, t := range changed.Tools {
		f.Changed = append(f.Changed, t.Name)
	}
	var flagged control.ToolList
	if err := g.Get(ctx, "/api/tools", url.Values{"state": {"flagged"}}, &flagged); err != nil {
		return err
	}
	f.Flagged = flagged.Tools
	var keys struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := g.Get(ctx, "/api/keys", nil, &keys); err != nil {
		return err
	}
	f.HasKey = f.HasKey || len(keys.Keys) > 0
	return nil
}

// AddClients reports which MCP clients on this machine use junctor.
func (r *Report) AddClients(m clients.Machine) {
	for _, found := range clients.Discover(m) {
		f := Finding{Severity: OK, Area: "clients", Subject: found.File.Path, What: "already connected to junctor"}
		through := slices.ContainsFunc(found.Servers, clients.Server.Self)
		switch {
		case found.Err != nil:
			f.Severity, f.What = Warning, "cannot be read: "+strings.TrimPrefix(found.Err.Error(), found.File.Path+": ")
		case !through && len(found.Servers) > 0:
			f.Severity, f.What = Info, "has "+terminal.Count(len(found.Servers), "server")+" of its own"
			f.Do = "junctor connect " + found.File.Client + " --move moves them into junctor"
		case !through:
			continue
		}
		r.Add(f)
	}
}
