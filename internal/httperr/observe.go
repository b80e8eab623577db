package httperr

import (
	"net/http"
	"strings"

	"junctor/internal/tool"
)

// Observer is called for rejected requests. reason is one of a fixed set of
// words.
type Observer func(r *http.Request, status int, reason string, err error)

type observerKey struct{}

// WithObserver returns a handler that calls o for the requests that next or a
// nested handler rejects.
func WithObserver(o Observer, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, WithContext(r, tool.SetValue(r.Context(), observerKey{}, o)))
	})
}

// Rejected notifies the request's Observer of a rejection. It is for handlers
// that write the error response themselves.
func Rejected(r *http.Request, status int, err error) { observe(r, status, "", err) }

// observe reports a rejection with the reason why or, if that is empty, the
// error's kind. Errors of calls that are in the call log are not reported.
func observe(r *http.Request, status int, why string, err error) {
	o, ok := r.Context().Value(observerKey{}).(Observer)
	if !ok || tool.IsRecorded(err) {
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
