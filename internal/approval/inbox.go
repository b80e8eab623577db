package approval

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// Options are the settings and dependencies of an Inbox.
type Options struct {
	Config   Config
	Calls    *waiting.Service
	Standing *Standing
	Store    store.Values
	Shared   bool // other nodes use the store too
	// Redact is applied to arguments before they are stored and shown; nil
	// changes nothing.
	Redact func(json.RawMessage) json.RawMessage
	// Differences returns what changed in a tool since its definition was
	// approved, to be shown as JSON; nil when nothing did.
	Differences func(ctx context.Context, e *catalog.Entry) any
	// Audit records who allowed or denied what.
	Audit  func(ctx context.Context, action, target string, detail any)
	Client *http.Client // for the webhook
	Log    *slog.Logger
}

// Inbox manages the calls that wait for approval. It is safe for concurrent
// use.
type Inbox struct {
	Options
	cfg      atomic.Pointer[Config]
	id       string
	progress time.Duration // between progress messages to waiting clients

	mu        sync.Mutex
	attending int           // number of administrators' pages that are open on this node
	changed   chan struct{} // receives after a change of attending
}

const (
	spaceAttending    = "approvers"
	attendingInterval = 10 * time.Second
	attendingTTL      = 30 * time.Second
	progressInterval  = 10 * time.Second
	maxReason         = 1000
)

// New returns an Inbox; it starts nothing.
func New(o Options) *Inbox {
	o.Log = o.Log.With(telemetry.KeyComponent, "approval")
	if o.Redact == nil {
		o.Redact = func(raw json.RawMessage) json.RawMessage { return raw }
	}
	if o.Audit == nil {
		o.Audit = func(context.Context, string, string, any) {}
	}
	i := &Inbox{Options: o, id: rand.Text(), progress: progressInterval, changed: make(chan struct{}, 1)}
	i.SetConfig(o.Config)
	return i
}

// SetConfig replaces the settings for calls that begin to wait from now on.
func (i *Inbox) SetConfig(cfg Config) { i.cfg.Store(&cfg) }

// CurrentConfig returns the settings in effect.
func (i *Inbox) CurrentConfig() Config { return *i.cfg.Load() }

// Timeout returns how long a call waits for a person.
func (i *Inbox) Timeout() time.Duration { return i.CurrentConfig().Timeout() }

// Run publishes to other nodes whether an administrator has the page open on
// this node, until ctx is done.
func (i *Inbox) Run(ctx context.Context) error {
	if !i.Shared {
		return nil
	}
	tick := time.NewTicker(attendingInterval)
	defer tick.Stop()
	announced := false
	for {
		i.mu.Lock()
		here := i.attending > 0
		i.mu.Unlock()
		var err error
		switch {
		case here:
			_, err = i.Store.PutValue(ctx, store.Value{Space: spaceAttending, Name: i.id, Expires: time.Now().Add(attendingTTL)}, store.AnyVersion)
		case announced:
			err = i.Store.DeleteValue(ctx, spaceAttending, i.id, store.AnyVersion)
		}
		if err != nil && ctx.Err() == nil {
			i.Log.DebugContext(ctx, "cannot announce the open pages", "err", err)
		}
		announced = here
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-i.changed:
		}
	}
}

// attend counts an administrator's page as open until the returned function is
// called.
func (i *Inbox) attend() (leave func()) {
	count := func(n int) {
		i.mu.Lock()
		i.attending += n
		i.mu.Unlock()
		select {
		case i.changed <- struct{}{}:
		default:
		}
	}
	count(1)
	return sync.OnceFunc(func() { count(-1) })
}

// attended reports whether an administrator has the page open on some node.
func (i *Inbox) attended(ctx context.Context) bool {
	i.mu.Lock()
	here := i.attending > 0
	i.mu.Unlock()
	if here || !i.Shared {
		return here
	}
	pages, err := i.Store.Values(ctx, spaceAttending)
	if err != nil {
		i.Log.WarnContext(ctx, "cannot read the open pages of other nodes", "err", err)
	}
	return len(pages) > 0
}

// Allowed reports whether an earlier approval applies to a call.
func (i *Inbox) Allowed(ctx context.Context, call *tool.Call, e *catalog.Entry) bool {
	sub := subject(e)
	yes, err := i.Standing.AllowedAlways(ctx, call.Caller.ID, sub)
	if err == nil && !yes {
		yes, err = i.Standing.allowedInSession(ctx, call.Caller.ID, call.Session, sub)
	}
	if err != nil {
		i.Log.WarnContext(ctx, "cannot read the approvals; a person will be asked", "err", err)
	}
	return yes && err == nil
}

// Request is a request to approve a call.
type Request struct {
	Tool          string   `json:"tool"`                  // server:tool
	Why           string   `json:"why"`                   // why approval is required
	Fingerprint   string   `json:"fingerprint"`           // fingerprint of the tool's definition
	ArgumentsHash string   `json:"argumentsHash"`         // SHA-256 of the arguments, in hex
	Scopes        []Scope  `json:"scopes"`                // scopes that may be chosen
	Warnings      []string `json:"warnings,omitempty"`    // warnings about the definition
	Changed       bool     `json:"changed,omitempty"`     // the definition has changed since it was approved
	Differences   any      `json:"differences,omitempty"` // how the definition has changed; absent if unknown or too large
}

// Decision is a person's answer.
type Decision struct {
	Allow  bool
	Scope  Scope
	Reason string
}

// answer is the JSON form of a decision.
type answer struct {
	Action string `json:"action"` // allow, deny
	Scope  Scope  `json:"scope,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// askInbox waits for a person to allow or deny the call in the inbox. It
// returns waiting.ErrNoApprover if no one can, and waiting.ErrExpired if no one
// did in time. If ctx ends, the request is withdrawn. withClient means that the
// user of the client is asked, too.
func (i *Inbox) askInbox(ctx context.Context, call *tool.Call, e *catalog.Entry, withClient bool) (allow bool, reason string, err error) {
	cfg := i.CurrentConfig()
	if cfg.Webhook == nil && !i.attended(ctx) {
		return false, "", waiting.ErrNoApprover
	}
	params, err := i.request(ctx, call, e, withClient)
	if err != nil {
		return false, "", err
	}
	record := waiting.From(ctx)
	if record == nil {
		record, err = i.Calls.Start(ctx, waiting.StartOptions{
			Caller: call.Caller, Face: call.Face, Session: call.Session, Tool: e.Name.String(), Arguments: i.Redact(call.Arguments),
		})
		if err != nil {
			return false, "", err
		}
		defer func() {
			if err := record.Release(ctx); err != nil {
				i.Log.WarnContext(ctx, "cannot delete the record of a waiting call", "err", err)
			}
		}()
		inner, stop := record.Context(ctx)
		defer stop()
		ctx = inner
	} else if err := record.Show(ctx, e.Name.String(), i.Redact(call.Arguments)); err != nil {
		return false, "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel(nil)
	if !withClient { // a client that asks its user needs no progress
		background.Go(func() { i.keepAlive(ctx, call, e) })
	}
	in := waiting.Input{Kind: waiting.KindApproval, Params: params, Expires: time.Now().Add(cfg.Timeout()).UTC()}
	if cfg.Webhook != nil {
		background.Go(func() {
			if err := i.announce(ctx, *cfg.Webhook, record.ID()); err != nil && ctx.Err() == nil {
				i.Log.WarnContext(ctx, "approval webhook failed", "err", err)
				if !i.attended(ctx) {
					cancel(waiting.ErrNoApprover)
				}
			}
		})
	}
	got, err := record.Ask(ctx, in)
	if err != nil {
		return false, "", err
	}
	var a answer
	if err := json.Unmarshal(got.Answer, &a); err != nil {
		return false, "", fmt.Errorf("read the answer of an approval: %w", err)
	}
	if allow = a.Action == "allow"; allow {
		i.remember(ctx, call, e, a.Scope)
	}
	return allow, a.Reason, nil
}

// request returns the parameters of the approval request for a call.
func (i *Inbox) request(ctx context.Context, call *tool.Call, e *catalog.Entry, withClient bool) (json.RawMessage, error) {
	r := Request{
		Tool: e.Name.String(), Why: why(e, withClient),
		Fingerprint: e.Fingerprint(), ArgumentsHash: argumentsHash(call.Arguments),
		Scopes: []Scope{Once, ForSession, Always}, Warnings: e.Warnings(), Changed: e.Review.Changed,
	}
	if call.Session == "" {
		r.Scopes = []Scope{Once, Always}
	}
	if i.Differences != nil && e.Review.Changed {
		r.Differences = i.Differences(ctx, e)
	}
	data, err := json.Marshal(r)
	if err == nil && len(data) > maxRequest {
		r.Differences = nil // junctor servers diff shows them
		data, err = json.Marshal(r)
	}
	return data, err
}

func argumentsHash(arguments json.RawMessage) string {
	sum := sha256.Sum256(arguments)
	return hex.EncodeToString(sum[:])
}

// why returns the reason why approval is required, and who else is asked.
func why(e *catalog.Entry, withClient bool) string {
	by, also := "the profile of the caller asks for approval", ", and its client cannot ask"
	if e.Approval == catalog.AskApproval {
		by = fmt.Sprintf("a rule in toolRules asks for approval of %s", e.Name)
	}
	if withClient {
		also = "; its user is asked in the conversation, too"
	}
	return by + also
}

// maxRequest bounds the bytes of a question.
const maxRequest = 48 << 10

func (i *Inbox) remember(ctx context.Context, call *tool.Call, e *catalog.Entry, scope Scope) {
	var err error
	switch scope {
	case ForSession:
		err = i.Standing.allowInSession(ctx, call.Caller.ID, call.Session, subject(e))
	case Always:
		err = i.Standing.allowAlways(ctx, call.Caller.ID, subject(e))
	}
	if err != nil {
		i.Log.WarnContext(ctx, "cannot store the approval; a person will be asked again", "tool", e.Name.String(), "err", err)
	}
}

// keepAlive sends progress notifications to a client that requested them, so
// that neither the client nor an intermediary times out.
func (i *Inbox) keepAlive(ctx context.Context, call *tool.Call, e *catalog.Entry) {
	token := rawjson.Field(call.Meta, "progressToken")
	if call.Exchange.Notify == nil || token == nil {
		return
	}
	tick := time.NewTicker(i.progress)
	defer tick.Stop()
	for n := 1; ; n++ {
		// Progress must increase, and the tool's own progress begins later, so
		// the values are tiny.
		params, err := json.Marshal(map[string]any{"progressToken": token, "progress": float64(n) * 1e-6, "message": fmt.Sprintf("waiting for approval of %s", e.Name)})
		if err != nil {
			return
		}
		call.Exchange.Notify(mcp.MethodProgress, params)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
