package telemetry

import (
	"context"
	"math/rand/v2"

	"junctor/internal/tool"
)

// The keys of common attributes in the log.
const (
	KeyRequest   = "requestId"
	KeySession   = "sessionId"
	KeyTrace     = "traceId"
	KeyComponent = "component"
	KeyAction    = "action"
)

type fieldsKey struct{}

// fields are the log fields of a context. They are immutable once they are in a
// context.
type fields struct {
	request, session, trace string
}

func fieldsOf(ctx context.Context) *fields {
	f, _ := ctx.Value(fieldsKey{}).(*fields)
	return f
}

func (f *fields) each(do func(key, value string)) {
	for _, kv := range [...][2]string{
		{KeyRequest, f.request}, {KeySession, f.session}, {KeyTrace, f.trace},
	} {
		if kv[1] != "" {
			do(kv[0], kv[1])
		}
	}
}

// fieldsContext is a context and its fields in a single allocation.
type fieldsContext struct {
	context.Context
	fields fields
}

// Value implements context.Context.
func (c *fieldsContext) Value(key any) any {
	if key == (fieldsKey{}) {
		return &c.fields
	}
	return c.Context.Value(key)
}

func with(ctx context.Context, set func(*fields)) context.Context {
	c := &fieldsContext{Context: ctx}
	if have := fieldsOf(ctx); have != nil {
		c.fields = *have
	}
	set(&c.fields)
	return c
}

// newFields returns a copy of the fields of ctx, changed by set.
func newFields(ctx context.Context, set func(*fields)) *fields {
	var f fields
	if have := fieldsOf(ctx); have != nil {
		f = *have
	}
	set(&f)
	return &f
}

// NewID returns an id for requests and calls: 130 random bits in base32. It is
// unique, but not a secret.
func NewID() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	var id [26]byte
	for i := 0; i < len(id); {
		for bits, left := rand.Uint64(), 12; left > 0 && i < len(id); left-- {
			id[i] = alphabet[bits%32]
			bits /= 32
			i++
		}
	}
	return string(id[:])
}

// WithRequest returns a context whose log lines have the request's id.
func WithRequest(ctx context.Context, id string) context.Context {
	if RequestID(ctx) == id {
		return ctx
	}
	return with(ctx, func(f *fields) { f.request = id })
}

// SetRequest is [WithRequest] under the rule of [tool.SetValue].
func SetRequest(ctx context.Context, id string) context.Context {
	if RequestID(ctx) == id {
		return ctx
	}
	return tool.SetValue(ctx, fieldsKey{}, newFields(ctx, func(f *fields) { f.request = id }))
}

// WithSession returns a context whose log lines have the session's id.
func WithSession(ctx context.Context, id string) context.Context {
	return with(ctx, func(f *fields) { f.session = id })
}

// RequestID returns the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	if f := fieldsOf(ctx); f != nil {
		return f.request
	}
	return ""
}
