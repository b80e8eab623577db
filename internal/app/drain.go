package app

import (
	"context"
	"net/http"
	"time"

	"junctor/internal/attach"
)

// How a gateway stops.
const (
	// drainNotice is how long a node accepts requests after it stops being
	// ready, so that a load balancer can notice before requests are refused.
	drainNotice = 5 * time.Second
	// drainTimeout bounds how long calls in flight may take to finish.
	drainTimeout = 30 * time.Second
	// closeTimeout bounds sending the last responses and close notifications
	// to clients.
	closeTimeout = 2 * time.Second
)

// drain shuts the server down with minimal disruption for clients. At first it
// reports not ready but still serves requests. Then it accepts no new
// requests, waits for calls and replies in flight, and closes idle streams.
func (a *App) drain(server *http.Server, stopStreams func()) {
	a.stopping.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), drainNotice)
	defer cancel()
	if a.nodes != nil && !a.nodes.Alone(ctx) {
		a.log.Info("stopping; waiting for load balancers to notice", "within", drainNotice)
		<-ctx.Done()
	}
	a.log.Info("stopping; waiting for calls in flight", "within", drainTimeout)
	a.stopWaiting()
	if a.nodeSingletons != nil {
		a.nodeSingletons.Stop()
	}
	end, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		// Long-lived streams must not delay the shutdown.
		defer stopStreams()
		a.awaitAnswers(end, func() bool {
			return a.executor.InFlight() == 0 && (a.nodeSingletons == nil || a.nodeSingletons.Idle()) && !a.chat.Busy()
		})
	}()
	if err := server.Shutdown(end); err != nil {
		_ = server.Close()
	}
	<-quiet
	// Shutdown does not wait for WebSockets.
	closing, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	attach.AwaitIdle(closing, func() bool { return a.chat.Connections() == 0 })
}

// awaitAnswers waits until idle returns true and then, for up to closeTimeout,
// until MCP clients have received the responses to their requests.
func (a *App) awaitAnswers(ctx context.Context, idle func() bool) {
	attach.AwaitIdle(ctx, idle)
	answers, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	attach.AwaitIdle(answers, func() bool { return a.discovery.Answering() == 0 })
}

// stopWaiting cancels waits that could delay the shutdown: a question may
// never be answered, and a first connection may take minutes.
func (a *App) stopWaiting() {
	a.executor.StopWaiting()
	a.chat.StopWaiting()
	a.upstreams.StopWaiting()
}

// closeWhenStopping makes clients close their connections while the gateway is
// stopping.
func (a *App) closeWhenStopping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.ready() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
