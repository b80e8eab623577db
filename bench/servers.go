package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
)

// server is the MCP server behind the gateway. It does as little as possible.
type server struct{ list json.RawMessage }

// newServer returns a server with n tools, with descriptions and schemas of
// typical size.
func newServer(n int) *mcpserver.Server {
	var b strings.Builder
	b.WriteString(`{"tools":[{"name":"echo","description":"Answers with what it was given.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`)
	for i := 2; i < n; i++ { // the other two are echo and large
		fmt.Fprintf(&b, `,{"name":"tool_%d","description":"Creates, updates or removes record %d of the accounts database and returns what it looks like afterwards.","inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"The record's id"},"fields":{"type":"object","description":"What to change"},"dryRun":{"type":"boolean","description":"Only say what would happen"}},"required":["id"]}}`, i, i)
	}
	b.WriteString(`,{"name":"large","description":"Answers with 256 KB.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}`)
	return mcpserver.New(mcpserver.Options{}, &server{json.RawMessage(b.String())})
}

func (s *server) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	return mcpserver.Description{Info: json.RawMessage(`{"name":"bench","version":"1"}`), Capabilities: json.RawMessage(`{"tools":{}}`)}, nil
}

func (s *server) Serve(_ context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch r.Method {
	case "tools/list":
		return s.list, nil
	case "tools/call":
		if rawjson.FieldString(r.Params, "name") == "large" {
			return large, nil
		}
		text := rawjson.Field(r.Params, "arguments", "text")
		return json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `}]}`), nil
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
}

func (s *server) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

// listen serves h on a free port and prints its address.
func listen(h http.Handler) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + ln.Addr().String())
	return http.Serve(ln, h)
}

func serveHTTP(tools int) error { return listen(newServer(tools)) }

func serveStdio(tools int) error {
	return newServer(tools).ServeStream(context.Background(), os.Stdin, os.Stdout)
}

// serveProxy runs a bare reverse proxy to which the gateway is compared.
func serveProxy(target string) error {
	u, err := url.Parse("http://" + target)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(u) },
		Transport: transport,
	}
	return listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without this, an early response closes the request's body while it is
		// still being sent, and is truncated.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
}

// large is a result of 256 KB.
var large = json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat(payload+" ", (256<<10)/(len(payload)+1)) + `"}]}`)
