package mcpclient

import (
	"context"
	"time"
)

// wholeSession returns the session for a request. The id of a new one is known
// before its handshake is complete, so it waits for a renewal under way: some
// servers refuse requests until then.
func (w *httpWire) wholeSession(ctx context.Context) (*string, error) {
	session := w.session.Load()
	if len(w.renewing) > 0 {
		if err := w.lockSession(ctx); err != nil {
			return nil, err
		}
		session = w.session.Load()
		<-w.renewing
	}
	return session, nil
}

// lockSession waits until no other goroutine makes a session, and keeps others
// from it.
func (w *httpWire) lockSession(ctx context.Context) error {
	select {
	case w.renewing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// renewTime bounds how long a new session may take.
const renewTime = time.Minute

// renew makes a new session in place of a lost one, once for all calls that
// miss it. It goes on when ctx ends, since other calls wait for it too.
func (w *httpWire) renew(ctx context.Context, lost *string) error {
	if err := w.lockSession(ctx); err != nil {
		return err
	}
	if w.session.Load() != lost {
		<-w.renewing
		return nil
	}
	renewed := make(chan error, 1)
	go func() {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
		defer cancel()
		stop := context.AfterFunc(w.c.ctx, cancel)
		defer stop()
		err := w.replaceSession(own, lost)
		<-w.renewing
		renewed <- err
	}()
	select {
	case err := <-renewed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *httpWire) replaceSession(ctx context.Context, lost *string) error {
	if err := w.c.initialize(ctx); err != nil {
		w.session.Store(lost) // a session without a handshake is of no use: the next call tries again
		if retryEra(ctx, err) {
			w.c.end(err) // another server than before: negotiate from the start
		}
		return err
	}
	w.stop()
	w.ready(w.c.protocol())
	w.c.log.Info("session renewed")
	if w.c.opts.OnRenew != nil {
		w.c.opts.OnRenew()
	}
	return nil
}
