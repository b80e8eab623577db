// Package apiclient sends requests to the API of a running gateway and decodes
// its responses and errors. Paths and bodies are up to its callers.
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

// Client is a client of a gateway's API. HTTP must connect to the gateway
// whatever the host in the URL is.
type Client struct{ HTTP *http.Client }

// Get sends a GET request and decodes the JSON response.
func (c Client) Get(ctx context.Context, path string, query url.Values, into any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.send(ctx, http.MethodGet, path, "application/json", nil, decode(into))
}

// Post sends JSON and decodes the JSON response into a value, or ignores the
// response if into is nil.
func (c Client) Post(ctx context.Context, path string, body, into any) error {
	return c.send(ctx, http.MethodPost, path, "application/json", body, decode(into))
}

// Stream sends JSON and passes the body of the response to read while it is
// being received.
func (c Client) Stream(ctx context.Context, path, accept string, body any, read func(io.Reader) error) error {
	return c.send(ctx, http.MethodPost, path, accept, body, read)
}

// Patch sends JSON and ignores the response.
func (c Client) Patch(ctx context.Context, path string, body any) error {
	return c.send(ctx, http.MethodPatch, path, "application/json", body, decode(nil))
}

// Delete sends a DELETE request and ignores the response.
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
		return fmt.Errorf("the gateway: %w", whole.Err) // without the URL, whose host is a placeholder
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

// Error is an error response of the gateway.
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
