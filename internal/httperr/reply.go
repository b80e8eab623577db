package httperr

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// Handler returns a handler that responds with the error of f, if any. f must
// not write a response if it returns an error.
func Handler(f func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := f(w, r); err != nil {
			Write(w, r, err)
		}
	}
}

// JSON returns a handler that responds with the result of f: an error, a value
// as JSON, or no content if the value is nil.
func JSON(f func(r *http.Request) (any, error)) http.HandlerFunc {
	return Handler(func(w http.ResponseWriter, r *http.Request) error {
		v, err := f(r)
		switch {
		case err != nil:
			return err
		case v == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			Reply(w, v)
		}
		return nil
	})
}

// Reply responds with a value as JSON that must not be cached.
func Reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the client may have disconnected
}

// ReadJSON decodes the body of a request into v; see [ReadBody]. It returns
// invalid if the body is not JSON or has unknown members.
func ReadJSON(r *http.Request, v any, invalid error) error {
	data, err := ReadBody(r)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if dec.Decode(v) != nil {
		return invalid
	}
	return nil
}
