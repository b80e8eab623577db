package app

import (
	"context"
	"net/http"
	"time"

	"junctor/internal/attach"
)

// How a gateway stops.
const (
	// drainNotice is how long a node keeps accepting requests after it is no
	// longer ready, so that a load balancer can notice before requests are
	// refused.
	drainNotice = 5 * time.Second
	// drainTimeout is how long calls in flight get to finish.
	drainTimeout = 30 * time.Second
	// closeTimeout is the time for sending the last answers and close
	// notifications to clients.
	closeTimeout = 2 * time.Second
)

// drain shuts the server down with the least disturbance of clients. First it
// is not ready any more, while requests are still served. Then it takes no new
// requests, waits for calls and replies in flight, and ends idle streams.
func (a *App) drain(server *http.Server, stopStreams func()) {
	a.stopping.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), drainNotice)
	defer cancel()
	if a.nodes != nil && !a.nodes.Alone(ctx) {
		a.log.Info("stopping; a balancer may notice", "within", drainNotice)
		<-ctx.Done()
	}
	a.log.Info("stopping; calls in flight may finish", "within", drainTimeout)
	a.stopWaiting()
	if a.nodeSingletons != nil {
		a.nodeSingletons.Stop()
	}
	end, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		// Streams that never end by themselves must not delay the shutdown.
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

// closeWhenStopping has clients close their connections when the gateway is about
// to stop.
func (a *App) closeWhenStopping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.ready() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
