package mcpclient

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// gateway forwards everything to an upstream: an mcpserver and a Client back to
// back.
type gateway struct{ up *Client }

func (g gateway) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	info := g.up.Info()
	server := rawjson.Field(info.Raw, "serverInfo")
	if server == nil {
		server = rawjson.Field(info.Raw, "_meta", mcp.MetaServerInfo)
	}
	return mcpserver.Description{Info: server, Capabilities: info.Capabilities, Instructions: info.Instructions}, nil
}

func (g gateway) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	return g.up.Do(ctx, tool.Request{Method: r.Method, Params: r.Params, Exchange: r.Exchange})
}

func (g gateway) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

// TestGatewayBetweenAllVersions bridges every pair of versions: progress in
// order and before the response, questions to the caller, cancellation, errors.
func TestGatewayBetweenAllVersions(t *testing.T) {
	for _, down := range []string{mcp.Version20250618, mcp.Version20251125, mcp.Version20260728} {
		for _, up := range []string{mcp.Version20250618, mcp.Version20260728} {
			t.Run(down+" to "+up, func(t *testing.T) {
				t.Parallel()
				s, hangs, stopped := sdkServer()
				o := testOptions()
				o.Protocol, o.Pin = up, true
				server := mcpserver.New(mcpserver.Options{}, gateway{overPipe(t, s, o)})
				front := httptest.NewServer(server)
				t.Cleanup(func() {
					server.Close()
					front.CloseClientConnections()
					front.Close()
				})
				o = testOptions()
				o.Protocol, o.Pin = down, true
				c, err := Connect(t.Context(), NewHTTP(HTTPOptions{URL: front.URL}), o)
				if err != nil {
					t.Fatalf("Connect: %v", err)
				}
				t.Cleanup(func() { c.Close() })
				exercise(t, c, down, hangs, stopped)
			})
		}
	}
}
