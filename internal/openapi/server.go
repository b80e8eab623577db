package openapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Limits of one call.
const (
	maxResponse   = 8 << 20
	maxRetries    = 2
	maxRetryAfter = 20 * time.Second // for longer delays the caller decides
	maxRedirects  = 5
)

// Options are the settings and dependencies of a Server.
type Options struct {
	Document    string // a path or an http(s) address
	BaseURL     string // replaces the document's base URL
	Filter      Filter
	Header      http.Header       // sent with every request to the service
	Credentials map[string]string // by security scheme
	// Login sets the token of the person's login on a request, for schemes
	// without a credential; nil if there is no login.
	Login func(context.Context, *http.Request, *mcpclient.HTTPError) error

	CacheDir  string // for copies of fetched documents; empty for no copies
	UserAgent string
	Proxy     func(*http.Request) (*url.URL, error)
	Log       *slog.Logger
}

// Server is an mcpserver.Handler with the operations of a service as tools.
type Server struct {
	opts    Options
	loader  *loader
	service atomic.Pointer[loaded]
}

// loaded is a service with its HTTP client.
type loaded struct {
	*Service
	client *http.Client
	tokens map[string]oauth2.TokenSource // by scheme and credential
}

// NewServer returns a Server after reading the document. ctx only bounds that.
func NewServer(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: o}
	header := http.Header{"User-Agent": {o.UserAgent}}
	if sameHost(o.Document, o.BaseURL) { // credentials are only sent to the service
		for name, values := range o.Header {
			header[name] = values
		}
	}
	s.loader = &loader{
		address: o.Document, header: header, cache: o.CacheDir, log: o.Log,
		client: &http.Client{Transport: transport(o.Proxy, nil), CheckRedirect: documentRedirect},
	}
	if _, err := s.reload(ctx); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	return s, nil
}

// reload reloads the document and reports whether its tools have changed.
func (s *Server) reload(ctx context.Context) (bool, error) {
	data, err := s.loader.load(ctx)
	if err != nil || data == nil {
		return false, err
	}
	service, err := Parse(data, s.loader.source(), s.opts.BaseURL, s.opts.Filter)
	if err != nil {
		return false, err
	}
	guard := newGuard(service, s.loader.source())
	if err := guard.check(service.Base); err != nil {
		return false, err
	}
	next := &loaded{Service: service, client: &http.Client{
		Transport:     transport(s.opts.Proxy, guard),
		CheckRedirect: serviceRedirect,
	}}
	next.tokens = s.tokenSources(next)
	s.loader.keep(ctx, data)
	before := s.service.Swap(next)
	for i, text := range service.Skipped {
		if i == 20 {
			s.opts.Log.WarnContext(ctx, "more operations without a tool", "count", len(service.Skipped)-i)
			break
		}
		s.opts.Log.WarnContext(ctx, "operation without a tool", "operation", text)
	}
	return before != nil && !sameTools(before.Service, service), nil
}

func sameTools(a, b *Service) bool {
	return slices.EqualFunc(a.operations, b.operations, func(x, y *operation) bool { return bytes.Equal(x.definition, y.definition) })
}

// Watch periodically reloads the document and calls changed when its tools
// have changed. It returns when ctx is done.
func (s *Server) Watch(ctx context.Context, changed func()) {
	tick := time.NewTicker(s.loader.interval())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			reading, cancel := context.WithTimeout(ctx, readTimeout)
			different, err := s.reload(reading)
			cancel()
			if err != nil && ctx.Err() == nil {
				s.opts.Log.WarnContext(ctx, "cannot reload the OpenAPI document; the tools stay unchanged", "err", err)
			}
			if different {
				changed()
			}
		}
	}
}

// Describe implements mcpserver.Handler.
func (s *Server) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	service := s.service.Load()
	info, err := json.Marshal(map[string]string{"name": cmp.Or(service.Title, service.Base.Host), "version": service.Version})
	if err != nil {
		return mcpserver.Description{}, err
	}
	return mcpserver.Description{
		Info: info, Capabilities: json.RawMessage(`{"tools":{"listChanged":true}}`),
		Instructions: cut(strings.TrimSpace(service.Description), maxDescription),
		Public:       true,
	}, nil
}

// Serve implements mcpserver.Handler: tools/list and tools/call.
func (s *Server) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	service := s.service.Load()
	switch r.Method {
	case mcp.MethodToolsList:
		offset := 0
		if cursor := rawjson.FieldString(r.Params, "cursor"); cursor != "" {
			n, err := strconv.Atoi(cursor)
			if err != nil || n < 0 || n > len(service.operations) {
				return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("invalid cursor %q", cursor)}
			}
			offset = n
		}
		return service.list(offset), nil
	case mcp.MethodToolsCall:
		name := r.Name()
		o, ok := service.byName[name]
		if !ok {
			return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)}
		}
		result, err := s.call(ctx, service, o, r.Arguments())
		if tool.KindOf(err) == tool.UpstreamAuthRequired {
			return nil, err // package upstream has the caller and adds how to sign in
		}
		if err != nil {
			return json.Marshal(map[string]any{"content": []any{textBlock(err.Error())}, "isError": true})
		}
		return result, nil
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found: " + r.Method}
}

// Notified implements mcpserver.Handler. Notifications are ignored.
func (s *Server) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

// call sends the request. It retries if the service asks for that and the
// operation is idempotent, and after a 401 with the person's login.
func (s *Server) call(ctx context.Context, service *loaded, o *operation, arguments json.RawMessage) (json.RawMessage, error) {
	var refused *http.Response
	var triedNonce bool
	for attempt := 0; ; attempt++ {
		r, loggedIn, err := s.request(ctx, service, o, arguments, refused)
		if err != nil {
			return nil, err
		}
		resp, err := service.client.Do(r)
		if err != nil {
			return nil, withoutQuery(err)
		}
		content, err := readResponse(resp)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusUnauthorized && loggedIn && (refused == nil || !triedNonce && resp.Header.Get("DPoP-Nonce") != "") {
			triedNonce, refused = refused != nil, resp // a new token may require a nonce, too
			continue
		}
		if wait, again := retryAfter(resp); again && o.idempotent() && attempt < maxRetries && sleep(ctx, wait) {
			continue
		}
		if location := resp.Header.Get("Location"); resp.StatusCode >= 300 && resp.StatusCode < 400 && location != "" {
			return nil, fmt.Errorf("%s: the service redirects to %s; if that is its address, set baseUrl to it", status(resp.StatusCode), redactedURL(location))
		}
		return o.result(resp, content), nil
	}
}

// request builds the request of a call and reports whether it carries the
// token of the person's login. refused is the response to the previous attempt
// with that login.
func (s *Server) request(ctx context.Context, service *loaded, o *operation, arguments json.RawMessage, refused *http.Response) (r *http.Request, loggedIn bool, err error) {
	base := service.Base
	if o.server != "" {
		u, err := url.Parse(o.server)
		if err != nil {
			return nil, false, err
		}
		base = u
	}
	if r, err = o.request(ctx, base, arguments); err != nil {
		return nil, false, err
	}
	r.Header.Set("User-Agent", s.opts.UserAgent)
	for name, values := range s.opts.Header {
		r.Header[name] = values
	}
	from := credentialSource{credentials: s.opts.Credentials, token: service.token}
	if s.opts.Login != nil && r.Header.Get("Authorization") == "" {
		from.login = func(r *http.Request) error {
			loggedIn = true
			return s.login(r, refused)
		}
	}
	err = service.authorize(r, o, from)
	return r, loggedIn, err
}

func readResponse(resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, fmt.Errorf("the response was cut off: %w", err)
	}
	if len(content) > maxResponse {
		return nil, fmt.Errorf("the response is larger than %d MB; ask for less", maxResponse>>20)
	}
	return content, nil
}

// retryAfter reports whether the service asks for a retry within
// maxRetryAfter, and the delay.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	value := resp.Header.Get("Retry-After")
	wait := time.Duration(-1)
	if n, err := strconv.Atoi(value); err == nil {
		wait = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = max(0, time.Until(at))
	}
	return wait, wait >= 0 && wait <= maxRetryAfter
}

// sleep waits for d. It returns false if ctx is or would be done before.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// tokenSources returns the token sources of OAuth schemes with client
// credentials.
func (s *Server) tokenSources(service *loaded) map[string]oauth2.TokenSource {
	out := map[string]oauth2.TokenSource{}
	for name, sc := range service.schemes {
		id, secret, found := strings.Cut(s.opts.Credentials[name], ":")
		if sc.kind != "oauth2" || sc.token == "" || !found {
			continue
		}
		config := clientcredentials.Config{ClientID: id, ClientSecret: secret, TokenURL: sc.token}
		ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{
			Transport: service.client.Transport, Timeout: 10 * time.Second,
		})
		out[sc.token+" "+s.opts.Credentials[name]] = config.TokenSource(ctx)
	}
	return out
}

// token returns the access token of an OAuth scheme: obtained with client
// credentials, or the credential itself.
func (l *loaded) token(s scheme, credential string) (string, error) {
	source := l.tokens[s.token+" "+credential]
	if source == nil {
		return credential, nil
	}
	t, err := source.Token()
	if err != nil {
		if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
			return "", fmt.Errorf("the token endpoint answered %s (%s)", status(e.Response.StatusCode), e.ErrorCode)
		}
		return "", withoutQuery(err)
	}
	return t.AccessToken, nil
}
