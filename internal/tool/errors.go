package tool

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind classifies an error by what the caller can do about it. Its text is the
// code in the bodies of error responses.
type Kind string

// The kinds of failure. All faces map them with [Kind.HTTP] and [Kind.JSONRPC].
const (
	InvalidArguments     Kind = "INVALID_ARGUMENTS"
	ServerNotFound       Kind = "SERVER_NOT_FOUND"
	ToolNotFound         Kind = "TOOL_NOT_FOUND"
	MethodNotFound       Kind = "METHOD_NOT_FOUND"
	ToolDisabled         Kind = "TOOL_DISABLED"
	Denied               Kind = "DENIED"
	Unauthenticated      Kind = "UNAUTHENTICATED"
	UpstreamAuthRequired Kind = "UPSTREAM_AUTH_REQUIRED"
	CircuitOpen          Kind = "CIRCUIT_OPEN"
	RateLimited          Kind = "RATE_LIMITED"
	Timeout              Kind = "TIMEOUT"
	UpstreamFailed       Kind = "UPSTREAM_ERROR"
	ExecutionFailed      Kind = "TOOL_EXECUTION_ERROR"
	ParseFailed          Kind = "PARSE_ERROR"
	InvalidRequest       Kind = "INVALID_REQUEST"
	TooLarge             Kind = "TOO_LARGE"
	ProxyDisabled        Kind = "PROXY_DISABLED"
	Canceled             Kind = "CANCELED"
	Unavailable          Kind = "UNAVAILABLE"
	NoAction             Kind = "NO_ACTION"
	Internal             Kind = "INTERNAL"
)

var kinds = map[Kind]struct{ jsonrpc, http int }{
	InvalidArguments:     {-32602, http.StatusBadRequest},
	ServerNotFound:       {-32601, http.StatusNotFound},
	ToolNotFound:         {-32601, http.StatusNotFound},
	MethodNotFound:       {-32601, http.StatusNotFound},
	ToolDisabled:         {-32003, http.StatusForbidden},
	Denied:               {-32003, http.StatusForbidden},
	Unauthenticated:      {-32004, http.StatusUnauthorized},
	UpstreamAuthRequired: {-32004, http.StatusUnauthorized},
	CircuitOpen:          {-32005, http.StatusServiceUnavailable},
	RateLimited:          {-32006, http.StatusTooManyRequests},
	Timeout:              {-32007, http.StatusGatewayTimeout},
	UpstreamFailed:       {-32008, http.StatusBadGateway},
	ExecutionFailed:      {-32603, http.StatusOK},
	ParseFailed:          {-32700, http.StatusBadRequest},
	InvalidRequest:       {-32600, http.StatusBadRequest},
	TooLarge:             {-32600, http.StatusRequestEntityTooLarge},
	ProxyDisabled:        {-32600, http.StatusBadRequest},
	Canceled:             {-32800, 499}, // the client has disconnected and does not read the status
	Unavailable:          {-32008, http.StatusServiceUnavailable},
	NoAction:             {-32000, http.StatusUnprocessableEntity}, // a task in natural language that leads to no call
	Internal:             {-32603, http.StatusInternalServerError},
}

// JSONRPC returns the JSON-RPC error code of the kind.
func (k Kind) JSONRPC() int { return kinds[k.known()].jsonrpc }

// HTTP returns the HTTP status of the kind.
func (k Kind) HTTP() int { return kinds[k.known()].http }

func (k Kind) known() Kind {
	if _, ok := kinds[k]; ok {
		return k
	}
	return Internal
}

// ErrDown is in the chain of every error which reports that an upstream is down
// and the request did not reach it. Circuits do not count it, because the tool
// did not fail, and an immediate retry is useless.
var ErrDown = errors.New("upstream is down")

// ErrStoreUnavailable is in the chain of every error which reports that the
// store cannot be reached. A later retry may succeed.
var ErrStoreUnavailable = errors.New("the store cannot be reached")

// ErrStopping is in the chain of every error that ends a wait because the
// gateway stops.
var ErrStopping = errors.New("the gateway is stopping")

// Error is the only error whose message reaches a caller.
type Error struct {
	Kind       Kind
	Msg        string        // safe to show, without secrets and paths; explains what to do
	Details    any           // included in response bodies as JSON; may be nil
	RetryAfter time.Duration // after which a retry may succeed; 0 if unknown
	Err        error         // the cause, for logs and errors.Is; never shown
}

// Error returns the message followed by the cause, for logs. A cause that the
// message contains is not repeated.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	cause := e.Err.Error()
	if strings.Contains(e.Msg, cause) {
		return e.Msg
	}
	return e.Msg + ": " + cause
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ServerDisabledError returns the error for a call to a server that the
// configuration disables.
func ServerDisabledError(server string) error {
	return &Error{Kind: ToolDisabled, Msg: fmt.Sprintf("server %q is disabled; enable it with: junctor servers enable %s", server, server)}
}

// AsError returns the first Error in err's chain. Any other error, such as a
// disk failure, becomes one of kind Internal that does not show its cause.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Msg: "internal error; the gateway's log has the cause under this request's id", Err: err}
}

// recordedError marks the error of a call that is in the call log.
type recordedError struct{ error }

func (e recordedError) Unwrap() error { return e.error }

// Recorded returns err, marked as the error of a call that is in the call log.
func Recorded(err error) error { return recordedError{err} }

// IsRecorded reports whether an error in err's chain was marked by [Recorded].
func IsRecorded(err error) bool {
	_, ok := errors.AsType[recordedError](err)
	return ok
}

// KindOf returns the kind of [AsError](err), or "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	return AsError(err).Kind
}
