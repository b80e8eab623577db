package gemini

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

// tee copies the bytes of a stream to the receiver in the context.
type tee struct{ next http.RoundTripper }

type linesKey struct{}

func (t tee) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if raw, ok := r.Context().Value(linesKey{}).(*lines); ok && res.StatusCode == http.StatusOK {
		raw.body = res.Body
		res.Body = raw
	}
	return res, nil
}

// lines is the body of a stream. It records the parts of each data event while
// the SDK reads it; the SDK yields one response for each.
type lines struct {
	body interface {
		Read([]byte) (int, error)
		Close() error
	}
	rest  []byte
	queue [][]json.RawMessage
	err   error
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.body.Read(p)
	l.rest = append(l.rest, p[:n]...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			break
		}
		l.rest = rest
		l.line(bytes.TrimSpace(line))
	}
	if err != nil && len(l.rest) > 0 {
		l.line(bytes.TrimSpace(l.rest))
		l.rest = nil
	}
	if err != nil && err != io.EOF {
		// The SDK would print it to standard error.
		l.err, err = err, io.EOF
	}
	return n, err
}

func (l *lines) line(line []byte) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return
	}
	var chunk struct {
		Candidates []struct {
			Content struct {
				Parts []json.RawMessage `json:"parts"`
			} `json:"content"`
		} `json:"candidates"`
	}
	var parts []json.RawMessage
	if json.Unmarshal(data, &chunk) == nil && len(chunk.Candidates) > 0 {
		parts = chunk.Candidates[0].Content.Parts
	}
	l.queue = append(l.queue, parts)
}

func (l *lines) Close() error { return l.body.Close() }

func (l *lines) next() []json.RawMessage {
	if len(l.queue) == 0 {
		return nil
	}
	parts := l.queue[0]
	l.queue = l.queue[1:]
	return parts
}
