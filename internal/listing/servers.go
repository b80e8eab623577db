package listing

import (
	"fmt"

	"junctor/internal/catalog"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Server is an upstream as a caller sees it.
type Server struct {
	upstream.Status                 // Tools counts those that the caller may use
	Enabled         int             // how many of them are enabled
	Known           *catalog.Server // nil until its tools are known
}

// Available reports whether the server is not known to be unreachable.
func (s Server) Available() bool {
	return s.State != upstream.Disconnected && s.State != upstream.AuthRequired
}

// Servers returns the servers that the caller may see, ordered by name.
func (s *Service) Servers(caller *tool.Caller) []Server {
	snap := s.Snapshot()
	var list []Server
	for _, st := range s.opts.Upstreams.Status() {
		if caller.MaySee(st.Name) {
			list = append(list, s.Describe(snap, caller, st))
		}
	}
	return list
}

// Describe adds the data of the catalogue to the status of a server.
func (s *Service) Describe(snap *catalog.Snapshot, caller *tool.Caller, st upstream.Status) Server {
	server := Server{Status: s.statusForCaller(st, caller), Known: snap.Server(st.Name)}
	if server.Known != nil {
		server.Tools, server.Enabled = server.Known.ToolsFor(caller)
	}
	return server
}

// CheckServer returns an error if the tools of the server cannot be shown.
func (s *Service) CheckServer(snap *catalog.Snapshot, caller *tool.Caller, server string) error {
	if !caller.MaySee(server) {
		return s.ServerNotFoundError(caller, server)
	}
	known := snap.Server(server)
	if known != nil && known.Callers == nil {
		return nil
	}
	st, ok := s.opts.Upstreams.StatusOf(server)
	if !ok {
		return s.ServerNotFoundError(caller, server)
	}
	if st.State == upstream.Disabled {
		return tool.ServerDisabledError(server)
	}
	if st = s.statusForCaller(st, caller); known != nil && st.State == upstream.Connected {
		return nil
	}
	e := &tool.Error{Kind: tool.Unavailable, Msg: fmt.Sprintf("server %q is %s and its tools are not known", server, st.State)}
	switch st.State {
	case upstream.AuthRequired:
		e.Kind = tool.UpstreamAuthRequired
	case upstream.Connecting:
		e.Msg += "; try again shortly"
	}
	if st.Reason != "" {
		e.Msg += ": " + st.Reason
	}
	return e
}

// ServerNotFoundError returns the error for a server that is not configured or
// that the caller may not see, with the most similar names that it may see.
func (s *Service) ServerNotFoundError(caller *tool.Caller, server string) error {
	var names []string
	for _, st := range s.opts.Upstreams.Status() {
		names = append(names, st.Name)
	}
	return catalog.ServerNotFoundError(caller, server, names)
}
