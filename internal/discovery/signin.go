package discovery

import (
	"context"
	"encoding/json"
	"strings"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// canOpenURLs reports whether the client can have its user open a URL.
func canOpenURLs(r *mcpserver.Request) bool {
	return rawjson.Field(r.Exchange.Capabilities, "elicitation", "url") != nil
}

// signIn returns the response to a failed call: the URL to open if the caller
// has to sign in and its client can open URLs, otherwise a result for the
// model.
func signIn(r *mcpserver.Request, err error, name tool.Name) (json.RawMessage, error) {
	if first := mcp.SignInRequired(err); first != nil && canOpenURLs(r) {
		return nil, first
	}
	return errorResult(err, name), nil
}

// signInError returns the error with the URL at which the caller can sign in
// to a server, or err if there is none.
func (f *Face) signInError(ctx context.Context, r *mcpserver.Request, server string, err error) error {
	if st, ok := f.opts.Upstreams.StatusOf(server); !ok || st.Login != upstream.LoginPerCaller || mcp.SignInRequired(err) != nil {
		return err
	}
	if _, why := f.forward(ctx, r, server, mcp.MethodPing, nil); mcp.SignInRequired(why) != nil {
		return why
	}
	return err
}

// signInFor returns the error for a tool that is unknown because the caller is
// not signed in to its server; nil if that is not the reason.
func (v *directView) signInFor(ctx context.Context, r *mcpserver.Request, name string) error {
	for _, s := range v.face.opts.Tools.Servers(&r.Caller) {
		if s.Login == upstream.LoginPerCaller && s.State == upstream.AuthRequired && strings.HasPrefix(name, s.Name+"__") {
			return v.face.signInError(ctx, r, s.Name, &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: s.Name + ": " + s.Reason})
		}
	}
	return nil
}
