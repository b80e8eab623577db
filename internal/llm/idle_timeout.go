package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

var errSilent = errors.New("the provider stopped responding")

// idleTimeout is a transport that gives up on a provider which sends nothing for
// too long, whether before the first byte or between two. It measures bytes
// on the wire, so the comments and pings that keep a thinking model's stream
// alive count, although no event comes of them.
type idleTimeout struct {
	next  http.RoundTripper
	limit time.Duration
}

// HTTPClient returns a client for a provider's SDK: base's transport (nil: a
// default one), no redirects, and an end to silence longer than the model's
// timeout.
func (c Config) HTTPClient(base http.RoundTripper) *http.Client {
	if base == nil {
		base = http.DefaultTransport
	}
	if limit := c.TimeoutMs.Duration(); limit > 0 {
		base = idleTimeout{next: base, limit: limit}
	}
	return &http.Client{
		Transport: base,
		// A key must not follow a redirect to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (t idleTimeout) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(t.limit, func() { cancel(errSilent) })
	res, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		timer.Stop()
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent
		}
		cancel(nil)
		return nil, err
	}
	res.Body = &idleReader{body: res.Body, timer: timer, limit: t.limit, ctx: ctx, cancel: cancel}
	return res, nil
}

type idleReader struct {
	body   io.ReadCloser
	timer  *time.Timer
	limit  time.Duration
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (l *idleReader) Read(p []byte) (int, error) {
	n, err := l.body.Read(p)
	if n > 0 {
		l.timer.Reset(l.limit)
	}
	if err != nil {
		l.timer.Stop()
		if err != io.EOF && errors.Is(context.Cause(l.ctx), errSilent) {
			err = errSilent
		}
	}
	return n, err
}

func (l *idleReader) Close() error {
	l.timer.Stop()
	err := l.body.Close()
	l.cancel(nil)
	return err
}
