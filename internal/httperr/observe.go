package httperr

import (
	"net/http"
	"strings"

	"junctor/internal/tool"
)

// Observer is called for a request that was rejected. reason is one of a fixed set
// of words.
type Observer func(r *http.Request, status int, reason string, err error)

type observerKey struct{}

// WithObserver has the Observer called for the requests that next, or what it
// passes them to, rejects.
func WithObserver(o Observer, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, WithContext(r, tool.SetValue(r.Context(), observerKey{}, o)))
	})
}

// Rejected tells the request's Observer that it was rejected, for handlers that
// answer with a body of their own.
func Rejected(r *http.Request, status int, err error) { observe(r, status, "", err) }

// observe reports a rejection under why, or else under the error's kind. What
// is refused after a call has begun has its line in the call log.
func observe(r *http.Request, status int, why string, err error) {
	o, ok := r.Context().Value(observerKey{}).(Observer)
	if !ok {
		return
	}
	if why == "" {
		switch kind := tool.KindOf(err); kind {
		case tool.Unauthenticated, tool.Denied, tool.ParseFailed, tool.InvalidRequest, tool.TooLarge, tool.ProxyDisabled, tool.ServerNotFound, tool.MethodNotFound:
			why = strings.ToLower(string(kind))
		default:
			return
		}
	}
	o(r, status, why, err)
}
