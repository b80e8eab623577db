package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

var errIdleProvider = errors.New("the provider stopped responding")

// idleTimeout is a transport that cancels a request if the provider sends
// nothing for too long, before the first byte or between two. It counts bytes
// on the wire, so comments and pings that keep the stream of a reasoning model
// alive also count.
type idleTimeout struct {
	next  http.RoundTripper
	limit time.Duration
}

// HTTPClient returns a client for a provider's SDK with base's transport (nil:
// a default one), without redirects, and with the model's idle timeout.
func (c Config) HTTPClient(base http.RoundTripper) *http.Client {
	if base == nil {
		base = http.DefaultTransport
	}
	if limit := c.TimeoutMs.Duration(); limit > 0 {
		base = idleTimeout{next: base, limit: limit}
	}
	return &http.Client{
		Transport: base,
		// A key must not be sent to the target of a redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (t idleTimeout) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(t.limit, func() { cancel(errIdleProvider) })
	res, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		timer.Stop()
		if errors.Is(context.Cause(ctx), errIdleProvider) {
			err = errIdleProvider
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
		if err != io.EOF && errors.Is(context.Cause(l.ctx), errIdleProvider) {
			err = errIdleProvider
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
