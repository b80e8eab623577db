package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// maxIssuerResponse bounds a response of an issuer, in bytes.
const maxIssuerResponse = 1 << 20

// issuerCache limits how often the same document is requested from an issuer.
// Every token with an unknown key causes a request for the keys, and anyone can
// create such tokens: without the cache, callers could make the gateway flood
// the issuer. A failure is remembered as long as a document, and a response
// that is neither metadata nor keys is a failure.
type issuerCache struct {
	next http.RoundTripper

	mu   sync.Mutex
	kept map[string]cachedResponse // by address; an issuer has two or three
}

type cachedResponse struct {
	at     time.Time
	err    error // then there is no response
	header http.Header
	body   []byte
}

// RoundTrip implements http.RoundTripper for requests without a body. The
// context of a request must not depend on a caller of the gateway, because its
// failure is remembered for others.
func (s *issuerCache) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	address := r.URL.String()
	kept, ok := s.kept[address]
	if !ok || time.Since(kept.at) >= discoveryRetryDelay {
		res, err := s.next.RoundTrip(r)
		if err == nil && res.StatusCode/100 == 3 && res.Header.Get("Location") != "" {
			return res, nil // the client follows the redirect
		}
		kept = cachedResponse{err: err}
		if err == nil {
			kept.header = res.Header
			kept.body, kept.err = readDocument(res)
		}
		kept.at = time.Now()
		s.kept[address] = kept
	}
	if kept.err != nil {
		return nil, kept.err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: kept.header.Clone(), Body: io.NopCloser(bytes.NewReader(kept.body)), ContentLength: int64(len(kept.body)), Request: r,
	}, nil
}

// readDocument reads and closes the body of an issuer's response.
func readDocument(res *http.Response) ([]byte, error) {
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the issuer answered %s", res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxIssuerResponse+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxIssuerResponse:
		return nil, fmt.Errorf("the issuer answered with more than %d bytes", maxIssuerResponse)
	}
	var document struct {
		Issuer string            `json:"issuer"` // of metadata
		Keys   []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &document); err != nil || document.Issuer == "" && len(document.Keys) == 0 {
		return nil, errors.New("the issuer answered with neither metadata nor keys")
	}
	return body, nil
}

// issuerKeys are the keys of an issuer for one verification. It stores why they
// could not be fetched, because oidc.IDTokenVerifier hides the cause.
type issuerKeys struct {
	oidc.KeySet
	unavailable error
}

// VerifySignature implements oidc.KeySet.
func (k *issuerKeys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, token)
	if _, ok := errors.AsType[*url.Error](err); ok || ctx.Err() != nil { // every failed request is a url.Error
		k.unavailable = err
	}
	return payload, err
}
