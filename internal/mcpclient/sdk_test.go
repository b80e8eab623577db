package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// sdkServer returns a server of the official SDK with a tool for each kind of
// message between call and response. Its tool hang signals when it hangs, and
// when it was cancelled.
func sdkServer() (s *sdk.Server, hangs, stopped chan struct{}) {
	hangs, stopped = make(chan struct{}, 8), make(chan struct{}, 8)
	s = sdk.NewServer(&sdk.Implementation{Name: "sdk", Title: "SDK", Version: "1.8.0"}, &sdk.ServerOptions{Instructions: "be kind"})
	object := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&sdk.Tool{Name: "echo", InputSchema: object}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "count", InputSchema: object}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 20 {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Total: 20}); err != nil {
				return nil, err
			}
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "ask", InputSchema: object}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Params.InputResponses == nil {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"name": &sdk.ElicitParams{Message: "who?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}}}, RequestState: "state-1"}, nil
		}
		answer, ok := r.Params.InputResponses["name"].(*sdk.ElicitResult)
		if !ok {
			return nil, fmt.Errorf("no answer in %v", r.Params.InputResponses)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(answer.Action, " ", answer.Content["name"], " ", r.Params.RequestState)}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "hang", InputSchema: object}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		hangs <- struct{}{}
		<-ctx.Done()
		stopped <- struct{}{}
		return nil, ctx.Err()
	})
	return s, hangs, stopped
}

// testOptions returns options that declare all capabilities.
func testOptions() Options {
	return Options{Name: "junctor-test", Version: "0", DiscoverTimeout: time.Hour, Capabilities: Capabilities{Sampling: true, ElicitationForm: true, ElicitationURL: true, Roots: true}}
}

// overPipe connects to an SDK server through a pair of byte streams.
func overPipe(t *testing.T, s *sdk.Server, o Options) *Client {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.Run(ctx, &sdk.IOTransport{Reader: toServer, Writer: fromServer})
		fromServer.Close()
	})
	c, err := Connect(t.Context(), OverLink(mcp.NewStream(toClient, fromClient, mcp.StreamOptions{})), o)
	if err != nil {
		cancel()
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		c.Close()
		cancel()
		wg.Wait()
	})
	return c
}

func overHTTP(t *testing.T, s *sdk.Server, h *sdk.StreamableHTTPOptions, o Options) *Client {
	t.Helper()
	ts := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, h))
	c, err := Connect(t.Context(), NewHTTP(HTTPOptions{URL: ts.URL}), o)
	if err != nil {
		ts.Close()
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		c.Close()
		ts.CloseClientConnections()
		ts.Close()
	})
	return c
}

func TestClientWithSDK(t *testing.T) {
	for _, version := range []string{"", mcp.Version20241105, mcp.Version20250326, mcp.Version20250618, mcp.Version20251125, mcp.Version20260728} {
		o := testOptions()
		o.Protocol, o.Pin = version, version != ""
		want := version
		if want == "" {
			want = mcp.Version20260728
		}
		t.Run("pipe "+version, func(t *testing.T) {
			t.Parallel()
			s, hangs, stopped := sdkServer()
			exercise(t, overPipe(t, s, o), want, hangs, stopped)
		})
		t.Run("http "+version, func(t *testing.T) {
			t.Parallel()
			s, hangs, stopped := sdkServer()
			exercise(t, overHTTP(t, s, &sdk.StreamableHTTPOptions{Stateless: mcp.Stateless(want), PropagateRequestCancellation: mcp.Stateless(want)}, o), want, hangs, stopped)
		})
		t.Run("http json "+version, func(t *testing.T) {
			t.Parallel()
			s, _, _ := sdkServer()
			c := overHTTP(t, s, &sdk.StreamableHTTPOptions{JSONResponse: true, Stateless: mcp.Stateless(want)}, o)
			got, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"echo","arguments":{"a":12345678901234567890}}`)})
			if err != nil || !strings.Contains(string(got), `{\"a\":12345678901234567890}`) {
				t.Errorf("echo = %s, %v", got, err)
			}
		})
	}
}

func exercise(t *testing.T, c *Client, version string, hangs, stopped chan struct{}) {
	info := c.Info()
	if info.Protocol != version || info.Name != "sdk" || info.Title != "SDK" || info.Instructions != "be kind" || rawjson.Field(info.Capabilities, "tools") == nil {
		t.Fatalf("Info = %+v, want version %s", info, version)
	}
	list, err := c.Do(t.Context(), tool.Request{Method: "tools/list"})
	if err != nil || !strings.Contains(string(list), `"echo"`) {
		t.Fatalf("tools/list = %s, %v", list, err)
	}

	var progress []string
	got, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"count","arguments":{},"_meta":{"progressToken":"mine"}}`),
		Exchange: tool.Exchange{Notify: func(method string, params json.RawMessage) {
			progress = append(progress, string(rawjson.Field(params, "progressToken"))+string(rawjson.Field(params, "progress")))
		}}})
	if err != nil || !strings.Contains(string(got), "done") {
		t.Errorf("count = %s, %v", got, err)
	}
	want := make([]string, 20)
	for i := range want {
		want[i] = fmt.Sprintf(`"mine"%d`, i)
	}
	if strings.Join(progress, " ") != strings.Join(want, " ") {
		t.Errorf("progress = %v, want all twenty in order", progress)
	}

	ask := func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if method != "elicitation/create" || rawjson.FieldString(params, "message") != "who?" {
			t.Errorf("asked %s %s", method, params)
		}
		return json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`), nil
	}
	got, err = c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"ask","arguments":{}}`),
		Exchange: tool.Exchange{Ask: ask, Capabilities: json.RawMessage(`{"elicitation":{}}`)}})
	if version >= mcp.Version20250618 && (err != nil || !strings.Contains(string(got), "accept Ada state-1")) {
		t.Errorf("ask = %s, %v", got, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hangs
		cancel()
	}()
	_, err = c.Do(ctx, tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"hang","arguments":{}}`)})
	if tool.KindOf(err) != tool.Canceled {
		t.Errorf("hang: %v, want that it was cancelled", err)
	}
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("the server was not told to stop")
	}
	// The SDK's HTTP server refuses unknown methods of the handshake era without
	// JSON-RPC.
	_, err = c.Do(t.Context(), tool.Request{Method: "no/such"})
	refused, _ := errors.AsType[*HTTPError](err)
	if e, ok := err.(*mcp.Error); (!ok || e.Code != mcp.CodeMethodNotFound) && (refused == nil || refused.Status != http.StatusBadRequest) {
		t.Errorf("unknown method: %v", err)
	}
}

// No notification is lost, duplicated, misrouted or late, however many calls
// share the connection.
func TestProgressUnderLoad(t *testing.T) {
	for name, connect := range map[string]func(*testing.T, *sdk.Server) *Client{
		"pipe": func(t *testing.T, s *sdk.Server) *Client { return overPipe(t, s, testOptions()) },
		"http, sessions": func(t *testing.T, s *sdk.Server) *Client {
			o := testOptions()
			o.Protocol = mcp.Version20251125
			return overHTTP(t, s, nil, o)
		},
		"http, stateless": func(t *testing.T, s *sdk.Server) *Client {
			return overHTTP(t, s, &sdk.StreamableHTTPOptions{Stateless: true}, testOptions())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, _ := sdkServer()
			c := connect(t, s)
			var wg sync.WaitGroup
			for range 32 {
				wg.Go(func() {
					for range 4 {
						var over atomic.Bool
						seen := 0
						// All callers use the same token, as real ones do.
						_, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"count","arguments":{},"_meta":{"progressToken":1}}`),
							Exchange: tool.Exchange{Notify: func(_ string, params json.RawMessage) {
								if over.Load() {
									t.Error("a notification came after the answer")
								}
								if string(rawjson.Field(params, "progress")) != fmt.Sprint(seen) || string(rawjson.Field(params, "progressToken")) != "1" {
									t.Errorf("got %s, want progress %d", params, seen)
								}
								seen++
							}}})
						over.Store(true)
						if err != nil || seen != 20 {
							t.Errorf("%d of 20 notifications, %v", seen, err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
