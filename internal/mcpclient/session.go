package mcpclient

import (
	"context"
	"time"
)

// readySession returns the session for a request. It waits for a replacement in
// progress: the id of the new session is set before its handshake is complete,
// and some servers refuse requests until then.
func (w *httpWire) readySession(ctx context.Context) (*string, error) {
	session := w.session.Load()
	if len(w.sessionLock) > 0 {
		if err := w.lockSession(ctx); err != nil {
			return nil, err
		}
		session = w.session.Load()
		<-w.sessionLock
	}
	return session, nil
}

// lockSession acquires the lock for creating a session. It fails if ctx is done
// first.
func (w *httpWire) lockSession(ctx context.Context) error {
	select {
	case w.sessionLock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sessionTimeout bounds the time to create a session.
const sessionTimeout = time.Minute

// recoverSession replaces a lost session, once for all calls that noticed the
// loss. The replacement continues when ctx is done, because other calls wait
// for it too.
func (w *httpWire) recoverSession(ctx context.Context, lost *string) error {
	if err := w.lockSession(ctx); err != nil {
		return err
	}
	if w.session.Load() != lost {
		<-w.sessionLock
		return nil
	}
	replaced := make(chan error, 1)
	go func() {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionTimeout)
		defer cancel()
		stop := context.AfterFunc(w.c.ctx, cancel)
		defer stop()
		err := w.replaceSession(own, lost)
		<-w.sessionLock
		replaced <- err
	}()
	select {
	case err := <-replaced:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *httpWire) replaceSession(ctx context.Context, lost *string) error {
	if err := w.c.initialize(ctx); err != nil {
		w.session.Store(lost) // a session without a handshake is unusable: the next call retries
		if retryEra(ctx, err) {
			w.c.end(err) // a different server now: negotiate from the start
		}
		return err
	}
	w.stop()
	w.ready(w.c.protocol())
	w.c.log.Info("session replaced")
	if w.c.opts.OnSessionReplaced != nil {
		w.c.opts.OnSessionReplaced()
	}
	return nil
}
