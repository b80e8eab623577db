package app

import (
	"context"
	"net/http"
	"time"

	"junctor/internal/attach"
)

// How a gateway stops.
const (
	// noticeFor is how long a node keeps accepting requests after it is no
	// longer ready, so that a load balancer can notice before requests are
	// refused.
	noticeFor = 5 * time.Second
	// drainFor is how long calls in flight get to finish.
	drainFor = 30 * time.Second
	// closeTimeout is the time for sending the last answers and close
	// notifications to clients.
	closeTimeout = 2 * time.Second
)

// drain ends the server in the order that its clients notice least: first it
// is no longer ready, while everything is still served; then no new request is
// taken, calls and replies in flight finish, and the streams that only listen
// are ended.
func (a *App) drain(server *http.Server, stopStreams func()) {
	a.stopping.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), noticeFor)
	defer cancel()
	if a.nodes != nil && !a.nodes.Alone(ctx) {
		a.log.Info("stopping; a balancer may notice", "within", noticeFor)
		<-ctx.Done()
	}
	a.log.Info("stopping; calls in flight may finish", "within", drainFor)
	a.stopWaiting()
	if a.nodeSingletons != nil {
		a.nodeSingletons.Stop()
	}
	end, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		// Streams that never end by themselves must not hold the end up.
		defer stopStreams()
		a.awaitAnswers(end, func() bool {
			return a.executor.InFlight() == 0 && (a.nodeSingletons == nil || a.nodeSingletons.Idle()) && !a.chat.Busy()
		})
	}()
	if err := server.Shutdown(end); err != nil {
		_ = server.Close()
	}
	<-quiet
	// The server knows nothing of WebSockets.
	closing, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	attach.AwaitIdle(closing, func() bool { return a.chat.Connections() == 0 })
}

// awaitAnswers waits until idle is true and, for a moment, until MCP clients have
// been sent the answers of their requests.
func (a *App) awaitAnswers(ctx context.Context, idle func() bool) {
	attach.AwaitIdle(ctx, idle)
	answers, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	attach.AwaitIdle(answers, func() bool { return a.discovery.Answering() == 0 })
}

// stopWaiting ends the waits that could delay the shutdown: a question may never
// be answered, and a first connection may take minutes.
func (a *App) stopWaiting() {
	a.executor.StopWaiting()
	a.chat.StopWaiting()
	a.upstreams.StopWaiting()
}

// leaving asks clients to come by another connection when the gateway is
// about to stop.
func (a *App) leaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.ready() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
