package mcpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"junctor/internal/http1"
	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// How a broken stream is resumed.
const (
	maxResumeTries = 5 // in a row without anything new
	minResumeDelay = 500 * time.Millisecond
	maxResumeDelay = 30 * time.Second
)

// readStream reads an event stream until the response. A stream of the
// handshake era that breaks before the response is resumed if its events have
// ids.
func (w *httpWire) readStream(ctx, reqCtx context.Context, cancel context.CancelFunc, stop func() bool, cl *pendingRequest, resp *http.Response) (mcp.Message, error) {
	events := mcp.NewEventReader(resp.Body, w.limits)
	defer events.Release()
	for failures := 0; ; {
		answer, received, err := w.readAnswer(events, cl)
		if err == nil {
			stop()
			if own, ok := resp.Body.(*http1.Body); ok {
				own.Detach()
			}
			go drain(resp.Body, cancel)
			return answer, nil
		}
		resp.Body.Close()
		if ctx.Err() != nil {
			cancel()
			return mcp.Message{}, ctx.Err()
		}
		if _, ok := errors.AsType[*mcp.DecodeError](err); ok {
			cancel()
			return mcp.Message{}, err
		}
		if answer, failed, ok := cl.drain(); ok { // it arrived on the GET stream
			cancel()
			return answer, failed
		}
		if received {
			failures = 0
		}
		if events.LastID == "" || w.c.stateless.Load() || failures == maxResumeTries {
			cancel()
			return mcp.Message{}, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server dropped the stream before it answered", Err: err}
		}
		if resp, err = w.resume(ctx, reqCtx, events, &failures); err != nil {
			cancel()
			return mcp.Message{}, err
		}
		events.Reset(resp.Body)
	}
}

// resume opens a GET stream that continues after the last event received.
func (w *httpWire) resume(ctx, reqCtx context.Context, events *mcp.EventReader, failures *int) (*http.Response, error) {
	for {
		if err := sleep(ctx, resumeDelay(events.Retry, *failures)); err != nil {
			return nil, err
		}
		*failures++
		resp, err := w.get(reqCtx, w.session.Load(), events.LastID)
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if h, ok := errors.AsType[*HTTPError](err); ok && h.Status/100 == 4 || *failures >= maxResumeTries {
			return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server dropped the stream before it answered, and does not resume it", Err: err}
		}
	}
}

// resumeDelay returns the delay before the next attempt: the delay that the
// server requested, or minResumeDelay, doubled with each failure.
func resumeDelay(asked time.Duration, failures int) time.Duration {
	if asked == 0 {
		asked = minResumeDelay
	}
	return min(asked<<min(failures, 8), max(maxResumeDelay, asked))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readAnswer reads events until the response of the call. received reports whether
// anything was received.
func (w *httpWire) readAnswer(events *mcp.EventReader, cl *pendingRequest) (answer mcp.Message, received bool, err error) {
	for {
		_, data, err := events.Next()
		if err != nil {
			if d, ok := errors.AsType[*mcp.DecodeError](err); ok && d.ID != "" && d.ID != cl.idText {
				continue
			}
			return mcp.Message{}, received, err
		}
		received = true
		found := false
		var lost error
		mcp.DecodeEach(data, w.limits, func(m mcp.Message, decodeErr error) {
			d, broken := errors.AsType[*mcp.DecodeError](decodeErr)
			switch {
			case broken && d.ResponseID() == cl.idText:
				lost = d
			case broken:
				w.c.handleDecodeError(d)
			case m.IsResponse() && answers(&m, cl):
				answer, found = m, true
			default:
				w.c.handle(&m, cl)
			}
		})
		if found {
			return answer, true, nil
		}
		if lost != nil {
			return mcp.Message{}, true, lost
		}
	}
}

// answers reports whether m, received on the call's own stream, is the call's
// response.
func answers(m *mcp.Message, cl *pendingRequest) bool {
	return m.ID == cl.idText || m.ID == "" || strings.Trim(string(m.ID), `"`) == string(cl.idText)
}

// get opens an event stream.
func (w *httpWire) get(ctx context.Context, session *string, lastID string) (*http.Response, error) {
	resp, err := w.httpEndpoint.send(ctx, http.MethodGet, w.url, func(h http.Header) {
		h.Set("Accept", "text/event-stream")
		if v := *w.version.Load(); v != "" {
			h.Set("Mcp-Protocol-Version", v)
		}
		if session != nil {
			h.Set("Mcp-Session-Id", *session)
		}
		if lastID != "" {
			h.Set("Last-Event-ID", lastID)
		}
	}, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || !isEventStream(resp.Header.Get("Content-Type")) {
		return nil, newHTTPError(resp, readErrorBody(resp))
	}
	return resp, nil
}

// standalone keeps the GET stream open, on which a server of the handshake era
// sends messages that belong to no request. Servers need not support it.
// answered is called when the stream is open or refused.
func (w *httpWire) standalone(ctx context.Context, session *string, answered func()) {
	defer answered()
	lastID := ""
	var retry time.Duration
	opened := false
	for failures := 0; ctx.Err() == nil; {
		resp, err := w.get(ctx, session, lastID)
		if err == nil {
			opened = true
			w.streamOpened.Store(true)
			answered()
			events := mcp.NewEventReader(resp.Body, w.limits)
			events.LastID, events.Retry = lastID, retry
			if w.deliver(events) {
				failures = 0
			}
			lastID, retry = events.LastID, events.Retry
			events.Release()
			resp.Body.Close()
			w.streamOpened.Store(false)
		} else if h, ok := errors.AsType[*HTTPError](err); ok {
			if h.Status == http.StatusNotFound && session != nil && opened {
				w.recoverSessionLater(session)
				return
			}
			if h.Status/100 == 4 && h.Status != http.StatusTooManyRequests || h.Status/100 == 2 {
				w.c.log.Debug("the server offers no standalone stream", "status", h.Status)
				return
			}
		}
		if sleep(ctx, resumeDelay(max(retry, minResumeDelay), failures)) != nil {
			return
		}
		failures++
	}
}

// deliver delivers the events of the GET stream until it ends, and reports
// whether there were any.
func (w *httpWire) deliver(events *mcp.EventReader) (any bool) {
	for {
		_, data, err := events.Next()
		if err != nil {
			if d, ok := errors.AsType[*mcp.DecodeError](err); ok {
				w.c.handleDecodeError(d)
				continue
			}
			if !errors.Is(err, io.EOF) && w.c.ctx.Err() == nil {
				w.c.log.Debug("stream broke", "err", err)
			}
			return any
		}
		any = true
		mcp.DecodeEach(data, w.limits, func(m mcp.Message, err error) {
			if d, ok := errors.AsType[*mcp.DecodeError](err); ok {
				w.c.handleDecodeError(d)
				return
			}
			w.c.handle(&m, nil)
		})
	}
}

// recoverSessionLater creates a new session in the background after one was
// lost, so that notifications are received again.
func (w *httpWire) recoverSessionLater(session *string) {
	go func() {
		ctx, cancel := context.WithTimeout(w.c.ctx, backgroundPostTimeout)
		defer cancel()
		if err := w.recoverSession(ctx, session); err != nil {
			w.c.log.Debug("cannot re-establish the session", "err", err)
		}
	}()
}
