package auth

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// maxIssuerResponse bounds a response of an issuer, in bytes.
const maxIssuerResponse = 1 << 20

// issuerCache limits how often the same document is requested from an issuer.
// Every token with an unknown key causes a request for the keys, and anyone can
// create such tokens: without the cache, callers could make the gateway flood
// the issuer.
type issuerCache struct {
	next http.RoundTripper

	mu   sync.Mutex
	kept map[string]cachedResponse // by address; an issuer has two or three
}

type cachedResponse struct {
	at     time.Time
	header http.Header
	body   []byte
}

// RoundTrip implements http.RoundTripper for requests without a body.
func (s *issuerCache) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	address := r.URL.String()
	kept, ok := s.kept[address]
	if !ok || time.Since(kept.at) >= discoveryRetryDelay {
		res, err := s.next.RoundTrip(r)
		if err != nil || res.StatusCode != http.StatusOK {
			return res, err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, maxIssuerResponse+1))
		if err != nil {
			return nil, err
		}
		if len(body) > maxIssuerResponse {
			return nil, fmt.Errorf("%s answers with more than %d bytes", address, maxIssuerResponse)
		}
		kept = cachedResponse{time.Now(), res.Header, body}
		s.kept[address] = kept
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: kept.header.Clone(), Body: io.NopCloser(bytes.NewReader(kept.body)), ContentLength: int64(len(kept.body)), Request: r,
	}, nil
}
