// Package toolsapi is the REST face for programs that call a model provider
// themselves: the tools in the provider's own format, one request to run what
// the model chose, the call log, and the gateway's health.
//
// It shows a caller only what that caller may use. It translates between
// HTTP, the providers' formats and the core; every call goes through the
// executor, and no provider is ever called from here.
package toolsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"junctor/internal/catalog"
	"junctor/internal/httperr"
	"junctor/internal/provider"
	"junctor/internal/search"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Catalog is where tools are looked up.
type Catalog interface {
	Snapshot() *catalog.Snapshot
}

// Searcher finds tools by words.
type Searcher interface {
	Search(q search.Query) ([]search.Hit, error)
}

// Executor runs tools.
type Executor interface {
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
}

// Servers tells of the upstreams.
type Servers interface {
	Status() []upstream.Status
	Has(server string) bool
	Connecting() []string
	Await(ctx context.Context, servers ...string) (pending []string)
}

// Options are what an API is made of.
type Options struct {
	Catalog  Catalog
	Search   Searcher
	Signals  func(caller string) search.Signals // nil turns them off
	Executor Executor
	Servers  Servers
	Log      store.Log
	Ready    func() bool // whether the gateway takes requests; nil means always
	Open     bool        // calls are served while the store is unavailable
	Version  string
}

// API serves the face.
type API struct {
	Options

	mu    sync.Mutex
	snap  *catalog.Snapshot // that tools was made from
	tools *provider.Tools
}

// New returns an API.
func New(o Options) *API {
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	return &API{Options: o}
}

// route is one endpoint. The description at /openapi.json and its test read
// the same table as the multiplexer.
type route struct {
	method, path string
	handle       http.HandlerFunc
}

func (a *API) routes() []route {
	return []route{
		{"GET", "/tools", a.listTools},
		{"GET", "/tools/{provider}", a.declare},
		{"GET", "/tools/{provider}/context", a.context},
		{"POST", "/execute", a.execute},
		{"POST", "/call_tool", a.callTool},
		{"GET", "/logs", a.logs},
		{"GET", "/health", a.health},
		{"GET", "/health/live", a.live},
		{"GET", "/health/ready", a.ready},
		{"GET", "/openapi.json", a.openapi},
	}
}

// Routes mounts the endpoints.
func (a *API) Routes(mux *http.ServeMux) {
	for _, r := range a.routes() {
		mux.HandleFunc(r.method+" "+r.path, r.handle)
		mux.HandleFunc(r.path, wrongMethod(r.method))
	}
	for _, root := range []string{"/tools/", "/health/", "/logs/", "/execute/", "/call_tool/"} {
		mux.HandleFunc(root, unknownPath)
	}
}

// Handler serves the face alone, for programs that embed it and for tests.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	a.Routes(mux)
	return httperr.WithRequestID(mux)
}

func wrongMethod(method string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", method)
		body, _ := httperr.New(r.Context(), &tool.Error{Kind: tool.InvalidRequest, Msg: fmt.Sprintf("%s is not possible here; use %s %s", tool.Shorten(r.Method, 64), method, r.URL.Path)})
		body.Error = http.StatusText(http.StatusMethodNotAllowed)
		writeJSON(w, http.StatusMethodNotAllowed, body)
	}
}

func unknownPath(w http.ResponseWriter, r *http.Request) {
	httperr.Write(w, r, &tool.Error{Kind: tool.MethodNotFound, Msg: "there is nothing at this path; GET /openapi.json lists what there is"})
}

// translation returns the translator of the current catalogue. It is made
// once for each version, and takes over what has not changed.
func (a *API) translation() (*catalog.Snapshot, *provider.Tools) {
	snap := a.Catalog.Snapshot()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.snap == snap && a.tools != nil {
		return snap, a.tools
	}
	if a.snap != nil && a.snap.Version > snap.Version { // another request was faster
		return snap, provider.NewTools(definitions(snap), nil)
	}
	a.snap, a.tools = snap, provider.NewTools(definitions(snap), a.tools)
	return snap, a.tools
}

// definitions are those of all tools, disabled ones too: a model may still
// call one out of an old conversation, and is owed the true answer.
func definitions(snap *catalog.Snapshot) []tool.Definition {
	defs := make([]tool.Definition, 0, snap.Len())
	for _, s := range snap.Servers() {
		for _, e := range s.Tools {
			defs = append(defs, e.Definition)
		}
	}
	return defs
}

// read decodes a request's body. Unknown keys are passed over: the objects
// inside are the providers', and they add to them.
func (a *API) read(w http.ResponseWriter, r *http.Request, v any) error {
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
			return &tool.Error{Kind: tool.InvalidRequest, Msg: misfit(wrong)}
		}
		return &tool.Error{Kind: tool.ParseFailed, Msg: "the body is not JSON: " + plain(err)}
	}
	return nil
}

// misfit says in the words of JSON what does not fit.
func misfit(err *json.UnmarshalTypeError) string {
	if err.Field == "" {
		return fmt.Sprintf("the body must be a JSON object; it is JSON of the type %s", err.Value)
	}
	return fmt.Sprintf("%s must be a string; it is JSON of the type %s", err.Field, err.Value)
}

// plain drops the package name that encoding/json puts before its messages.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "json: ") }

func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the values here always marshal
	writeBody(w, status, b.Bytes())
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone reads nothing
}
