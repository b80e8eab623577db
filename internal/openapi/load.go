package openapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The intervals between checks of a document for changes.
const (
	fileCheckInterval = 5 * time.Second
	urlCheckInterval  = 15 * time.Minute
)

// loader loads the document of one server from a file or from a URL. For a URL
// it stores a copy, which is used if the URL is unreachable.
type loader struct {
	address string // a path or a URL
	header  http.Header
	client  *http.Client
	cache   string // the folder for copies; empty for no copies
	log     *slog.Logger

	etag, modified string // of the last document
}

func (l *loader) isURL() bool {
	return strings.HasPrefix(l.address, "http://") || strings.HasPrefix(l.address, "https://")
}

func (l *loader) source() Source {
	if l.isURL() {
		return Source{URL: l.address}
	}
	return Source{Folder: filepath.Dir(l.address)}
}

func (l *loader) interval() time.Duration {
	if l.isURL() {
		return urlCheckInterval
	}
	return fileCheckInterval
}

// load returns the document, or nil if it has not changed since the last call.
func (l *loader) load(ctx context.Context) ([]byte, error) {
	if !l.isURL() {
		return l.readFile()
	}
	data, err := l.fetch(ctx)
	if err != nil && l.etag == "" && l.modified == "" {
		if kept, readErr := l.kept(); readErr == nil {
			l.log.WarnContext(ctx, "OpenAPI document not reachable; using the copy from the last start", "url", redactedURL(l.address), "err", err)
			return kept, nil
		}
	}
	return data, err
}

func (l *loader) readFile() ([]byte, error) {
	info, err := os.Stat(l.address)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxDocumentBytes {
		return nil, fmt.Errorf("%s is larger than %d MB", l.address, maxDocumentBytes>>20)
	}
	state := fmt.Sprint(info.ModTime().UnixNano(), info.Size())
	if state == l.modified {
		return nil, nil
	}
	data, err := os.ReadFile(l.address)
	if err == nil {
		l.modified = state
	}
	return data, err
}

func (l *loader) fetch(ctx context.Context) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.address, nil)
	if err != nil {
		return nil, err
	}
	r.Header = l.header.Clone()
	r.Header.Set("Accept", "application/json, application/yaml, */*;q=0.5")
	if l.etag != "" {
		r.Header.Set("If-None-Match", l.etag)
	} else if l.modified != "" {
		r.Header.Set("If-Modified-Since", l.modified)
	}
	resp, err := l.client.Do(r)
	if err != nil {
		return nil, withoutQuery(err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotModified:
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("GET %s: %s", redactedURL(l.address), status(resp.StatusCode))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocumentBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxDocumentBytes {
		return nil, fmt.Errorf("the document at %s is larger than %d MB", redactedURL(l.address), maxDocumentBytes>>20)
	}
	l.etag, l.modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	return data, nil
}

// keep stores the copy. An error is only logged, because the copy is only
// needed if the URL is unreachable at the next start.
func (l *loader) keep(ctx context.Context, data []byte) {
	if !l.isURL() || l.cache == "" {
		return
	}
	err := os.MkdirAll(l.cache, 0o700)
	if err == nil {
		temporary := l.copyPath() + ".new"
		if err = os.WriteFile(temporary, data, 0o600); err == nil {
			err = os.Rename(temporary, l.copyPath())
		}
	}
	if err != nil {
		l.log.WarnContext(ctx, "cannot save the OpenAPI document for the next start", "err", err)
	}
}

func (l *loader) kept() ([]byte, error) {
	if l.cache == "" {
		return nil, os.ErrNotExist
	}
	return os.ReadFile(l.copyPath())
}

func (l *loader) copyPath() string {
	sum := sha256.Sum256([]byte(l.address))
	return filepath.Join(l.cache, hex.EncodeToString(sum[:12])+".openapi")
}

// redactedURL returns a URL without the parts that may be secret.
func redactedURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(invalid URL)"
	}
	u.RawQuery, u.User, u.Fragment = "", nil, ""
	return u.String()
}

// withoutQuery removes the query from the URL in an error of the HTTP client,
// because it may contain an API key.
func withoutQuery(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s %s: %w", strings.ToUpper(e.Op), redactedURL(e.URL), e.Err)
	}
	return err
}
