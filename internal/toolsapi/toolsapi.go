// Package toolsapi is the REST API for programs that call a model provider
// themselves: the tools in the provider's format, one request to run the
// model's calls, the call log, and the gateway's health.
//
// It shows callers only what they may use. It translates between HTTP, the
// providers' formats and the core. Every call goes through the executor, and
// the package never calls a provider.
package toolsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"junctor/internal/httperr"
	"junctor/internal/listing"
	"junctor/internal/rawjson"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// Executor runs tools.
type Executor interface {
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
}

// Options are the dependencies of an API.
type Options struct {
	Tools    *listing.Service
	Executor Executor
	Scripts  Scripts
	Log      store.Log
	Ready    func() bool // whether the gateway accepts requests; nil means always
	Open     bool        // calls are served while the store is unavailable
	Version  string
	Waiting  *waiting.Service // stores asynchronous calls; nil disables them
}

// API serves the REST API for tools.
type API struct{ Options }

// New returns an API.
func New(o Options) *API {
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	return &API{o}
}

// route is one endpoint. The multiplexer, /openapi.json and its test use the
// same table.
type route struct {
	method, path string
	handle       func(w http.ResponseWriter, r *http.Request) error
}

func (a *API) routes() []route {
	return []route{
		{"GET", "/tools", a.listTools},
		{"GET", "/tools/{provider}", a.declare},
		{"GET", "/tools/{provider}/context", a.context},
		{"POST", "/execute", a.execute},
		{"POST", "/call_tool", a.callTool},
		{"POST", "/run", a.runScript},
		{"GET", "/logs", a.logs},
		{"GET", "/health", a.health},
		{"GET", "/health/live", a.live},
		{"GET", "/health/ready", a.ready},
		{"GET", "/openapi.json", a.openapi},
	}
}

// Routes registers the endpoints.
func (a *API) Routes(mux *http.ServeMux) {
	for _, r := range a.routes() {
		mux.HandleFunc(r.method+" "+r.path, httperr.Handler(r.handle))
		mux.HandleFunc(r.path, wrongMethod(r.method))
	}
	for _, root := range []string{"/tools/", "/health/", "/logs/", "/execute/", "/call_tool/", "/run/"} {
		mux.HandleFunc(root, unknownPath)
	}
}

func wrongMethod(method string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", method)
		httperr.WriteStatus(w, r, http.StatusMethodNotAllowed, &tool.Error{Kind: tool.InvalidRequest, Msg: fmt.Sprintf("%s is not allowed here; use %s", tool.Shorten(r.Method, 64), method)})
	}
}

func unknownPath(w http.ResponseWriter, r *http.Request) {
	httperr.Write(w, r, &tool.Error{Kind: tool.MethodNotFound, Msg: "there is no such path; GET /openapi.json lists the paths"})
}

// read decodes a request's body. Unknown keys are ignored, because providers
// add keys to their objects.
func read(r *http.Request, v any) error {
	data, err := httperr.ReadBody(r)
	if err != nil {
		return err
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return &tool.Error{Kind: tool.InvalidRequest, Msg: "the body is empty; send a JSON object"}
	}
	if err := json.Unmarshal(data, v); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return &tool.Error{Kind: tool.InvalidRequest, Msg: typeMismatch(wrong)}
		}
		return &tool.Error{Kind: tool.ParseFailed, Msg: "the body is not JSON: " + plain(err)}
	}
	return nil
}

// typeMismatch describes a type mismatch in terms of JSON.
func typeMismatch(err *json.UnmarshalTypeError) string {
	if err.Field == "" {
		return fmt.Sprintf("the body must be a JSON object; it is JSON of the type %s", err.Value)
	}
	wanted := "a string"
	if err.Type.Kind() == reflect.Bool {
		wanted = "true or false"
	}
	return fmt.Sprintf("%s must be %s; it is JSON of the type %s", err.Field, wanted, err.Value)
}

// plain removes the package name from the messages of encoding/json.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }

func writeJSON(w http.ResponseWriter, status int, v any) {
	writeBody(w, status, append(rawjson.MarshalOrNull(v), '\n'))
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	write(w, status, "application/json", body)
}

func write(w http.ResponseWriter, status int, mediaType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", mediaType+"; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a write error means that the client has disconnected
}
