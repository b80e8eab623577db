// Package apiclient sends requests to the API of a running gateway and reads its
// answers and errors. It knows paths and bodies only as its callers give them.
package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"junctor/internal/httperr"
)

// Client is the way to a gateway. HTTP connects to it whatever the address is.
type Client struct{ HTTP *http.Client }

// Get reads JSON from the gateway.
func (c Client) Get(ctx context.Context, path string, query url.Values, into any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.send(ctx, http.MethodGet, path, "application/json", nil, decode(into))
}

// Post sends JSON and reads JSON into a value, or ignores the answer if it is
// nil.
func (c Client) Post(ctx context.Context, path string, body, into any) error {
	return c.send(ctx, http.MethodPost, path, "application/json", body, decode(into))
}

// Stream sends JSON and hands the answer to read while it comes in.
func (c Client) Stream(ctx context.Context, path, accept string, body any, read func(io.Reader) error) error {
	return c.send(ctx, http.MethodPost, path, accept, body, read)
}

// Patch sends JSON and ignores the answer.
func (c Client) Patch(ctx context.Context, path string, body any) error {
	return c.send(ctx, http.MethodPatch, path, "application/json", body, decode(nil))
}

// Delete removes what is at the path.
func (c Client) Delete(ctx context.Context, path string) error {
	return c.send(ctx, http.MethodDelete, path, "application/json", nil, decode(nil))
}

func decode(into any) func(io.Reader) error {
	return func(body io.Reader) error {
		if into == nil {
			return nil
		}
		return json.NewDecoder(body).Decode(into)
	}
}

func (c Client) send(ctx context.Context, method, path, accept string, body any, read func(io.Reader) error) error {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://junctor"+path, content)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", accept)
	res, err := c.HTTP.Do(req)
	if whole, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("the gateway: %w", whole.Err) // its address means nothing to anyone
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 400 {
		return readError(res)
	}
	return read(res.Body)
}

// Error is a failure that the gateway reported.
type Error struct {
	Body   httperr.Body
	Schema json.RawMessage
}

func (e *Error) Error() string { return e.Body.Message }

func readError(res *http.Response) error {
	var body struct {
		httperr.Body
		Details struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"details"`
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil || body.Message == "" {
		return errors.New("the gateway answered " + res.Status)
	}
	return &Error{Body: body.Body, Schema: body.Details.Schema}
}
