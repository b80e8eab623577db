package codemode

import (
	"context"
	_ "embed" // for the prelude
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/results"
	"junctor/internal/script"
	"junctor/internal/tool"
)

//go:embed prelude.js
var prelude string

// The name of the record of a script.
const (
	Server = "junctor"
	Tool   = "run_code"
)

// Calls executes calls.
type Calls interface {
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
	Group(ctx context.Context, c tool.Call, work func(context.Context, *tool.Call) (tool.Result, error)) (tool.Result, error)
}

// Tools provides the tools that a caller may use.
type Tools interface {
	Snapshot() *catalog.Snapshot
	// Find returns the tools that match a query, best first.
	Find(ctx context.Context, caller *tool.Caller, query string, limit int) ([]*catalog.Entry, error)
}

// Options are the dependencies of a Service.
type Options struct {
	Calls   Calls
	Tools   Tools
	Results *results.Cache
	Config  Config
	Log     *slog.Logger
	Engine  *script.Engine // of [NewEngine]; nil makes one
}

// NewEngine returns an engine whose programs see tools and store.
func NewEngine() *script.Engine { return script.New(prelude) }

// Service runs scripts. It is safe for concurrent use.
type Service struct {
	opts   Options
	config atomic.Pointer[Config]
	engine *script.Engine
	values sessionValues
}

// New returns a Service; the engine is compiled when it is first used.
func New(o Options) *Service {
	if o.Engine == nil {
		o.Engine = NewEngine()
	}
	s := &Service{opts: o, engine: o.Engine}
	s.SetConfig(o.Config)
	return s
}

// SetConfig changes the limits of scripts that begin from now on.
func (s *Service) SetConfig(c Config) { s.config.Store(&c) }

// CurrentConfig returns the limits in effect.
func (s *Service) CurrentConfig() Config { return *s.config.Load() }

// Warm prepares the engine in the background.
func (s *Service) Warm() {
	go func() {
		if err := s.engine.Warm(); err != nil {
			s.opts.Log.Error("script engine not started", "err", err)
		}
	}()
}

// Request is one script to run.
type Request struct {
	Code     string
	Face     string
	Caller   tool.Caller
	Session  string // whose store the script uses; empty means that of the caller
	Meta     json.RawMessage
	Exchange tool.Exchange
	// Progress is called when a call begins and when it has ended, possibly
	// from several goroutines; it may be nil. Calls after the first maxTraced
	// are reported only when they begin.
	Progress func(Call)
}

// Call is one call of a script.
type Call struct {
	Number int       `json:"number"`
	Tool   string    `json:"tool"`
	Start  float64   `json:"startMs"` // since the script began
	Took   float64   `json:"tookMs"`
	Ended  bool      `json:"ended"`
	Error  string    `json:"error,omitempty"` // its code
	begun  time.Time // zero after the end
}

// Outcome is how a script ended.
type Outcome struct {
	ID      string          `json:"id"` // of its record, the parent of its calls
	Value   json.RawMessage `json:"value"`
	Log     []string        `json:"log,omitempty"`
	Dropped int             `json:"droppedLines,omitempty"` // of the log
	Calls   []Call          `json:"calls"`
	CPUMs   float64         `json:"cpuMs"`
	TookMs  float64         `json:"tookMs"`
	More    string          `json:"more,omitempty"` // how to read on, when the value was cut

	// Text is the value as text within maxOutputBytes.
	Text string `json:"-"`
}

// maxTraced bounds the calls of a script that its outcome lists.
const maxTraced = 1000

// scriptRun is a running script.
type scriptRun struct {
	s     *Service
	r     *Request
	begun time.Time

	mu    sync.Mutex
	calls []Call
}

// Permitted reports whether the caller may run scripts: yes, unless a glob with
// "!" excludes junctor:run_code. The calls of a script are checked
// individually.
func Permitted(c *tool.Caller) bool { return !c.Excludes(tool.Name{Server: Server, Tool: Tool}) }

// Run runs a script until it ends. Any error is a [*tool.Error]; the outcome
// then still contains what is known of the run.
func (s *Service) Run(ctx context.Context, r Request) (Outcome, error) {
	arguments, err := json.Marshal(map[string]string{"code": r.Code})
	if err != nil {
		return Outcome{}, fmt.Errorf("script: %w", err)
	}
	cfg := s.config.Load()
	var out Outcome
	record := tool.Call{
		Face: r.Face, Caller: r.Caller, Session: r.Session, Server: Server, Tool: Tool, Arguments: arguments, Meta: r.Meta, Exchange: r.Exchange,
	}
	_, err = s.opts.Calls.Group(ctx, record, func(ctx context.Context, call *tool.Call) (tool.Result, error) {
		r.Caller = call.Caller
		if !Permitted(&r.Caller) {
			return tool.Result{}, &tool.Error{Kind: tool.Denied, Msg: "this caller may not run scripts: its key, rule or profile excludes junctor:run_code; call the tools one by one"}
		}
		run := &scriptRun{s: s, r: &r, begun: time.Now(), calls: []Call{}}
		ended, err := s.engine.Run(ctx, script.Program{Source: r.Code, Owner: r.Caller.ID, Limits: cfg.limits(), Host: script.Host{Call: run.call, Sync: run.sync}})
		out = Outcome{
			ID: call.ID, Value: ended.Value, Log: ended.Log, Dropped: ended.Dropped, Calls: run.calls,
			CPUMs: millis(ended.CPU), TookMs: millis(time.Since(run.begun)),
		}
		if err != nil {
			return tool.Result{}, scriptError(err, &out)
		}
		return tool.Result{Raw: results.TextResult(string(ended.Value))}, nil
	})
	if err != nil {
		return out, err
	}
	whole := results.Text(out.Value)
	if out.Text = s.opts.Results.Cut(&r.Caller, whole, cfg.MaxOutputBytes); len(out.Text) != len(whole) || len(whole) > cfg.MaxOutputBytes {
		cut := strings.LastIndex(out.Text, "\n[junctor: ")
		out.More = out.Text[cut+1:]
		out.Value, _ = json.Marshal(out.Text[:cut])
	}
	return out, nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Details are the details of a script's error.
type Details struct {
	Script script.Code `json:"script"`
	Cause  string      `json:"cause,omitempty"` // the code of the error of a tool
	At     string      `json:"at,omitempty"`
	Calls  int         `json:"calls"`
	Log    []string    `json:"log,omitempty"`
}

func scriptError(err error, out *Outcome) error {
	e, ok := errors.AsType[*script.Error](err)
	if !ok {
		return err
	}
	kind := tool.ExecutionFailed
	switch e.Code {
	case script.SyntaxError, script.SourceLimit:
		kind = tool.InvalidArguments
	case script.TimeLimit, script.CPULimit:
		kind = tool.Timeout
	case script.MemoryLimit, script.ValueLimit:
		kind = tool.TooLarge
	case script.Canceled:
		kind = tool.Canceled
	case script.Failed:
		kind = tool.Internal
	}
	return &tool.Error{Kind: kind, Msg: e.Message, Err: e.Err, Details: Details{
		Script: e.Code, Cause: e.Cause, At: e.Stack, Calls: len(out.Calls), Log: out.Log,
	}}
}
