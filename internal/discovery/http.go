package discovery

import (
	"context"
	"io"
	"net/http"
	"strings"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/tool"
)

// ServeStream serves one client on a pair of byte streams.
func (f *Face) ServeStream(ctx context.Context, v View, r io.Reader, w io.Writer) error {
	s, err := f.pick(ctx, v)
	if err != nil {
		return err
	}
	return s.ServeStream(ctx, r, w)
}

// Open returns the function that serves a view on byte streams, or an error.
func (f *Face) Open(ctx context.Context, mode, server string) (func(context.Context, io.Reader, io.Writer) error, error) {
	v, err := ParseView(mode, server)
	if err != nil {
		return nil, err
	}
	s, err := f.pick(ctx, v)
	if err != nil {
		return nil, err
	}
	return s.ServeStream, nil
}

// pick returns the MCP server of a view.
func (f *Face) pick(ctx context.Context, v View) (*mcpserver.Server, error) {
	if v.Server != "" {
		return f.transparentFor(ctx, v.Server)
	}
	caller, mode := tool.CallerFrom(ctx), v.Mode
	if mode == "" {
		mode = Mode(caller.Mode())
	}
	if mode == "" {
		mode = f.config.Load().Mode
	}
	switch mode {
	case DirectMode:
		return f.direct, nil
	case CodeMode:
		f.opts.Scripts.Warm()
		return f.code, nil
	}
	return f.meta, nil
}

// Routes registers /mcp, and /mcp/{server} for the transparent views.
func (f *Face) Routes(mux *http.ServeMux) {
	mux.Handle("/mcp", f)
	mux.Handle("/mcp/{server}", f)
}

// ServeHTTP serves the view given by the path and by ?mode=.
func (f *Face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.config.Load().Enabled {
		refuse(w, &tool.Error{Kind: tool.MethodNotFound, Msg: "the MCP API is disabled (discovery.enabled)"})
		return
	}
	server := r.PathValue("server")
	if server == "" { // not mounted by Routes
		_, server, _ = strings.Cut(strings.Trim(r.URL.Path, "/"), "mcp/")
	}
	mode := ""
	if r.URL.RawQuery != "" {
		mode = r.URL.Query().Get("mode")
	}
	v, err := ParseView(mode, server)
	if err == nil {
		var s *mcpserver.Server
		if s, err = f.pick(r.Context(), v); err == nil {
			s.ServeHTTP(w, r)
			return
		}
	}
	refuse(w, tool.AsError(err))
}

// refuse responds with an error to a request for which there is no view.
func refuse(w http.ResponseWriter, e *tool.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(e.Kind.HTTP())
	_, _ = w.Write(mcp.AppendMessage(nil, &mcp.Message{Error: mcp.ToolError(e)}))
}
