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

// signIn answers a call that failed: with the URL to open where the caller has
// to sign in and its client can open one, otherwise with a result for the model.
func signIn(r *mcpserver.Request, err error, name tool.Name) (json.RawMessage, error) {
	if first := mcp.SignInRequired(err); first != nil && canOpenURLs(r) {
		return nil, first
	}
	return errorResult(err, name), nil
}

// signInError returns the error that says where the caller can sign in to a
// server, or err if there is no such place.
func (f *Face) signInError(ctx context.Context, r *mcpserver.Request, server string, err error) error {
	if st, ok := f.opts.Upstreams.StatusOf(server); !ok || st.Login != upstream.LoginPerCaller || mcp.SignInRequired(err) != nil {
		return err
	}
	if _, why := f.forward(ctx, r, server, mcp.MethodPing, nil); mcp.SignInRequired(why) != nil {
		return why
	}
	return err
}

// signInFor returns the error of a tool that is not known because the caller has
// no login of its own to its server; nil if that is not the reason.
func (v *directView) signInFor(ctx context.Context, r *mcpserver.Request, name string) error {
	for _, s := range v.face.opts.Tools.Servers(&r.Caller) {
		if s.Login == upstream.LoginPerCaller && s.State == upstream.AuthRequired && strings.HasPrefix(name, s.Name+"__") {
			return v.face.signInError(ctx, r, s.Name, &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: s.Name + ": " + s.Reason})
		}
	}
	return nil
}
