package agentify

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/mcptrace"
	"junctor/internal/rawjson"
	"junctor/internal/schema"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Calls executes calls and forwards other requests.
type Calls interface {
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
	Forward(ctx context.Context, r tool.Forward) (json.RawMessage, error)
	llm.Limiter
}

// Upstreams provides the state of the backends.
type Upstreams interface {
	StatusOf(server string) (upstream.Status, bool)
	Info(server, caller string) (mcpclient.ServerInfo, bool)
}

// Options are the settings and dependencies of a Face.
type Options struct {
	Tools     *listing.Service
	Calls     Calls
	Upstreams Upstreams

	// Model returns the model that chooses, or nil if there is none. It may
	// return a different model later.
	Model func() llm.Model

	// Configure takes the initializationOptions of a client that started the
	// gateway for itself. Nil means that clients cannot configure it.
	Configure func(ctx context.Context, options json.RawMessage) error

	Trace   *mcptrace.Trace                       // nil traces nothing
	Meter   interface{ Tokens(string, int, int) } // nil counts nothing
	Version string
	Log     *slog.Logger
	Redact  func(string) string // applied to clients' messages in the log; may be nil
}

// Face turns tasks into calls. It is safe for concurrent use.
type Face struct {
	opts   Options
	log    *slog.Logger
	server *mcpserver.Server
	slots  chan struct{}
	check  func() (*schema.Schema, error) // the schema of tasks, compiled on first use

	mu    sync.Mutex
	lists map[string]*extras // cached lists, by the rights of the caller
}

// maxTasks is the number of concurrent tasks. Each task costs model requests.
const maxTasks = 32

// drainTimeout is how long a task may continue after the client has closed its
// end without sending exit, like a script that pipes in one request.
const drainTimeout = time.Minute

// New returns a Face; it starts nothing.
func New(o Options) *Face {
	f := &Face{
		opts: o, log: o.Log.With(telemetry.KeyComponent, "agentify"),
		slots: make(chan struct{}, maxTasks), lists: map[string]*extras{},
		check: sync.OnceValues(func() (*schema.Schema, error) { return schema.Compile(json.RawMessage(taskSchema)) }),
	}
	f.server = mcpserver.New(mcpserver.Options{Log: o.Log, Redact: o.Redact, Info: f.info(), MaxCalls: maxTasks, DrainTimeout: drainTimeout}, &handler{f})
	return f
}

func (f *Face) info() json.RawMessage {
	return rawjson.MarshalOrNull(map[string]string{"name": "junctor-agentify", "title": "Junctor", "version": f.opts.Version})
}

// Close ends every stream of the face.
func (f *Face) Close() { f.server.Close() }

// Notified handles a notification of a backend that belongs to no call.
func (f *Face) Notified(_, _, method string, _ json.RawMessage) {
	switch method {
	case mcp.MethodResourcesChanged, mcp.MethodPromptsChanged:
		f.mu.Lock()
		defer f.mu.Unlock()
		clear(f.lists)
	}
}
