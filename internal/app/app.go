package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"junctor/internal/agentify"
	"junctor/internal/approval"
	"junctor/internal/audit"
	"junctor/internal/authserver"
	"junctor/internal/builtin"
	"junctor/internal/catalog"
	"junctor/internal/chat"
	"junctor/internal/codemode"
	"junctor/internal/config"
	"junctor/internal/configshare"
	"junctor/internal/discovery"
	"junctor/internal/executor"
	"junctor/internal/guard"
	"junctor/internal/http1"
	"junctor/internal/httpserver"
	"junctor/internal/listing"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/mcptrace"
	"junctor/internal/nodes"
	"junctor/internal/oauth"
	"junctor/internal/openapi"
	"junctor/internal/profile"
	"junctor/internal/reserved"
	"junctor/internal/results"
	"junctor/internal/search"
	"junctor/internal/secretkey"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/telemetry/otlp"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/waiting"
	"junctor/internal/webui"
)

// Options configure an App.
type Options struct {
	Config *config.Config
	// Reload specifies how to load the configuration again when it changes.
	Reload config.Options

	Version string
	DataDir string
	Environ []string // from which child processes inherit

	// AdminKey is the first administrator's key, from the environment.
	AdminKey telemetry.Secret
	// SecretKey encrypts tokens in the store. It comes from the environment;
	// without it, a key is stored in the data folder.
	SecretKey telemetry.Secret

	Log      *slog.Logger
	Level    *slog.LevelVar
	Recent   *telemetry.Ring[telemetry.LogEntry]
	Redactor *telemetry.Redactor

	// Socket returns the path of the socket at which the user's other programs
	// find a gateway with the configuration; nil or an empty path for none.
	Socket func(*config.Config) string

	// Temporary marks a gateway that runs in the process of one client and is
	// shared with others. Yield, which may be nil, stops it when a permanent
	// gateway asks for the socket.
	Temporary bool
	Yield     func()

	// Only limits the gateway to these upstreams; nil means all. The command
	// line uses it to start only the servers it needs.
	Only []string

	// AwaitInstall makes callers wait while packages are being installed. It
	// is meant for processes that end with their command.
	AwaitInstall bool

	// DiscoverTimeout is [upstream.Options.DiscoverTimeout].
	DiscoverTimeout time.Duration

	// Starts reports which of the upstreams Run starts; nil starts all. The
	// stored tools of the others stay in the catalogue.
	Starts func(server string) bool
}

// App is the gateway: the core and the APIs on top of it.
type App struct {
	opts  Options
	log   *slog.Logger
	begun time.Time
	node  string

	config   atomic.Pointer[config.Config]
	editing  sync.Mutex    // held while the configuration file is edited for an administrator and while the watcher applies it
	applying sync.Mutex    // held while a configuration is applied
	reloaded chan struct{} // signaled after config has changed

	store          store.Store
	sealer         func() (*store.Sealer, error) // finds the key when a secret is first read or written
	nodes          *nodes.Node                   // nil if the store is not shared
	nodeSingletons *nodes.Singletons             // nil if nodes is
	edits          *configshare.Sharer
	metrics        *telemetry.Metrics
	tracer         *telemetry.Tracer
	guard          *guard.Guard
	catalog        *catalog.Catalog
	profiles       *profile.Set
	search         *search.Index
	tools          *listing.Service
	oauth          *oauth.Service
	openAPILogins  openapi.Logins
	authserver     *authserver.Server
	gates          gates
	page           atomic.Pointer[string] // the address that Serve listens on
	rejections     *httpserver.Rejections
	streams        httpserver.StreamLimit
	upstreams      *upstream.Supervisor
	executor       *executor.Executor
	waiting        *waiting.Service
	audit          *audit.Log
	approvals      *approval.Inbox
	sink           *sink
	builtin        *mcpserver.Server
	builtinCallers *builtinCallers
	results        *results.Cache
	calls          *reserved.Calls // the executor, extended by the gateway's own tools
	scripts        *codemode.Service
	discovery      *discovery.Face
	models         *modelSet
	chat           *chat.Host
	trace          *mcptrace.Trace
	agentify       *agentify.Face
	debugPort      atomic.Pointer[debugPort] // set while an editor is served on stdio
	web            *webui.Handler
	apis           []routes    // served on every HTTP listener
	stopping       atomic.Bool // set when the shutdown begins
}

// Open builds the gateway. It opens the store and loads the tools of the last
// run from it; nothing is started before Run or Serve.
func Open(ctx context.Context, o Options) (*App, error) {
	cfg := o.Config
	a := &App{opts: o, log: o.Log, begun: time.Now(), node: nodeName(), reloaded: make(chan struct{}, 1)}
	a.config.Store(cfg)
	o.Redactor.Add(cfg.Secrets()...)
	o.Redactor.Add(o.AdminKey, o.SecretKey)

	var err error
	if err := store.CheckFolder(o.DataDir); err != nil {
		return nil, err
	}
	if a.store, err = OpenStore(ctx, cfg.Store, o.DataDir, o.Log); err != nil {
		return nil, err
	}
	if a.tracer, err = otlp.NewTracer(ctx, cfg.Telemetry.OTLP, o.Version, o.Redactor, o.Log); err != nil {
		_ = a.store.Close()
		return nil, err
	}
	a.sealer = secretkey.Sealer(o.SecretKey, o.DataDir, secretkey.HasKeyring(o.Environ))
	if err := a.joinNodes(); err != nil {
		_ = a.store.Close()
		return nil, err
	}
	a.metrics = telemetry.NewMetrics(o.Version)
	a.rejections = httpserver.NewRejections(o.Log, a.metrics)
	a.guard = guard.New(a.store, cfg.Security.SecurityConfig, o.Log)
	a.web = webui.New()
	a.catalog = catalog.New(nil, a.guard.Review)
	a.catalog.Configure(a.toolSettings(cfg), nil)
	a.profiles = profile.New(cfg.Profiles, profile.Options{Tags: a.catalog.TagsOf, ServerTags: a.catalog.ServerTags, Servers: a.catalog.ServerNames})
	a.search = listing.NewIndex(a.catalog)
	a.sink = newSink(a)
	a.builtinCallers = &builtinCallers{enabled: func() bool { return HasBuiltin(a.config.Load()) }}
	a.builtin = mcpserver.New(mcpserver.Options{Log: o.Log}, builtin.New(o.Version, a.status, a.builtinCallers.caller))
	a.audit = audit.New(a.store, o.Redactor.JSON, o.Log)
	rt := mcpclient.NewRoundTripper(http.ProxyFromEnvironment)
	a.oauth = a.newOAuth(rt)
	a.authserver = a.newAuthServer()
	a.trace = mcptrace.New(o.Redactor.JSON)
	a.upstreams = upstream.NewSupervisor(a.servers(cfg), upstream.Options{
		Sink: a.sink, Log: o.Log, Environ: o.Environ, DataDir: o.DataDir, AwaitInstall: o.AwaitInstall, Starts: o.Starts, Name: "junctor", Version: o.Version, Redact: o.Redactor.String,
		RoundTripper: http1.New(rt), Trace: a.trace, Authorizer: a.oauth, Singletons: a.upstreamSingletons(), Tasks: store.TaskOwners{Values: a.store},
		InProcess: map[string]upstream.Dialer{builtin.Name: a.dialBuiltin},
		OpenAPI:   a.openAPI().Dial, DiscoverTimeout: o.DiscoverTimeout,
		Capabilities: mcpclient.Capabilities{Sampling: true, SamplingTools: true, ElicitationForm: true, ElicitationURL: true, Roots: true, Extensions: upstream.ForwardedExtensions},
	})
	a.waiting = waiting.NewService(a.store, o.Log)
	a.waiting.SetResume(a.resumeTask)
	a.approvals = a.newApprovals(rt)
	a.results = results.NewCache()
	a.builtinCallers.Supervisor = a.upstreams
	a.executor = executor.New(executor.Options{
		Approvals: a.approvals,
		Catalog:   a.catalog, Upstreams: a.builtinCallers, Calls: a.store, Meter: a.metrics,
		Redact: o.Redactor.JSON, Tracer: a.tracer, Log: o.Log, Node: a.node, Budgets: a.budgets(), Tokens: a.store,
		Results: a.results, Closed: cfg.Store.WhenAway != store.FailOpen, StoreTimeout: cfg.Store.Timeout(),
		Config: executor.Config{Circuit: cfg.Circuit, Limits: cfg.Limits.LimitConfig},
	})
	a.tools = listing.New(listing.Options{Catalog: a.catalog, Search: a.search, Upstreams: a.upstreams, Logins: a.upstreams, Usage: a.usage})
	a.calls = &reserved.Calls{Executor: a.executor, Results: a.results, PageSize: func() int { return a.config.Load().Discovery.MaxResultBytes }}
	a.scripts = codemode.New(codemode.Options{Calls: a.calls, Tools: a.tools, Results: a.results, Config: cfg.Scripts, Log: o.Log})
	a.discovery = discovery.New(discovery.Options{
		Tools: a.tools, Calls: a.calls, Upstreams: a.upstreams, Waiting: a.waiting, NewItemIndex: a.search.Supplement, Scripts: a.scripts, Results: a.results,
		Config: cfg.Discovery, Version: o.Version, Log: o.Log,
		Server: mcpserver.Options{MaxSessions: maxSessions(cfg), Cluster: a.cluster(), Rejected: rejectedMCP, Redact: o.Redactor.String},
	})
	a.calls.Items = a.discovery
	a.sink.onNotification(a.discovery.Notified)
	a.models = newModelSet(a)
	a.models.choose(ctx, cfg, false)
	a.chat = chat.New(chat.Options{
		Approvals: a.approvals.Standing, ApprovalTimeout: a.approvals.Timeout, Profiles: a.profiles,
		Config: cfg.Chat, Models: a.models.set, Tools: a.tools, Executor: a.executor, Store: a.store, Meter: a.metrics, Tracer: a.tracer, Log: o.Log, Node: a.node,
		Shared: cfg.Store.URL != "",
	})
	a.metrics.Sessions("mcp", a.discovery.Sessions)
	a.metrics.Sessions("chat", a.chat.OpenSessions)
	a.metrics.Sessions("stream", a.streams.Open)
	a.agentify = a.newAgentify(nil)
	a.sink.onNotification(a.agentify.Notified)
	a.apis = a.newAPIs()
	if err := a.reencrypt(ctx); err != nil {
		_ = a.store.Close()
		return nil, err
	}
	if err := a.loadCatalogues(ctx, cfg); err != nil { // the tools are listed again when their servers connect
		o.Log.WarnContext(ctx, "cannot read the tools of the last run", "err", err)
	}
	return a, nil
}

// servers returns the configured upstreams and, if enabled, the built-in one.
func (a *App) servers(cfg *config.Config) []upstream.Config {
	list := slices.Clone(cfg.Servers)
	if HasBuiltin(cfg) {
		own := upstream.DefaultConfig()
		own.Name, own.Transport = builtin.Name, upstream.InProcess
		own.Description = "Time, arithmetic, text and the gateway's own status"
		list = append(list, own)
	}
	if a.opts.Only != nil {
		list = slices.DeleteFunc(list, func(s upstream.Config) bool { return !slices.Contains(a.opts.Only, s.Name) })
	}
	return list
}

// HasBuiltin reports whether a configuration includes the built-in server: if
// it is requested, or if no other server is enabled.
func HasBuiltin(cfg *config.Config) bool {
	if _, taken := cfg.Server(builtin.Name); taken {
		return false
	}
	if cfg.Builtin != nil {
		return *cfg.Builtin
	}
	return !slices.ContainsFunc(cfg.Servers, func(s upstream.Config) bool { return s.Enabled })
}

// dialBuiltin connects the supervisor to the built-in server as to any other.
// The server's end closes when the supervisor closes its own.
func (a *App) dialBuiltin(context.Context) (mcpclient.Transport, error) {
	near, far := mcp.Pipe()
	go func() { _ = a.builtin.ServeLink(context.Background(), far) }()
	return mcpclient.OverLink(near), nil
}

// openAPI returns the dialer for HTTP services that an OpenAPI document
// describes.
func (a *App) openAPI() openapi.Dialer {
	d := openapi.Dialer{
		UserAgent: "junctor/" + a.opts.Version, Proxy: http.ProxyFromEnvironment, Log: a.log, Logins: &a.openAPILogins,
		Authorize: func(ctx context.Context, server string, r *http.Request, refused *mcpclient.HTTPError) error {
			return a.oauth.Authorize(ctx, upstream.Login{Server: server}, r, refused)
		},
	}
	if a.opts.DataDir != "" {
		d.CacheDir = filepath.Join(a.opts.DataDir, "openapi")
	}
	return d
}

// Run runs the core until ctx is done. Serve runs it together with the APIs.
func (a *App) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.upstreams.Run(ctx) })
	g.Go(func() error { return a.oauth.Run(ctx) })
	g.Go(func() error { return a.endLoginsOfKeys(ctx) })
	g.Go(func() error { return a.store.Run(ctx) })
	g.Go(func() error { return a.runNodes(ctx) })
	g.Go(func() error { return a.waiting.Run(ctx) })
	g.Go(func() error { return a.approvals.Run(ctx) })
	g.Go(func() error { return a.guard.Run(ctx, a.catalog.Refresh) })
	g.Go(func() error { return a.discovery.Run(ctx) })
	g.Go(func() error { return a.models.run(ctx) })
	g.Go(func() error { return a.chat.Run(ctx) })
	return g.Wait()
}

// Close releases what Open has opened. Run and Serve must have returned.
func (a *App) Close() error {
	a.builtin.Close()
	a.agentify.Close()
	a.sink.flush()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := a.tracer.Shutdown(ctx); err != nil {
		a.log.WarnContext(ctx, "cannot send the last traces", "err", err)
	}
	return a.store.Close()
}

// nodeName returns a name that identifies this process among others on the
// same store.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// usage returns the call statistics of a tool, for ranking search results.
func (a *App) usage(n tool.Name) search.Signal {
	s := a.executor.Stats(n)
	return search.Signal{Calls: int64(s.Calls), Successes: int64(s.Successes), CircuitOpen: s.Circuit == executor.Open}
}
