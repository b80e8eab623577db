package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"junctor/internal/tool"
)

// issuer checks the tokens of one authorization server. The keys of the server
// are located when the first token arrives; a failure is retried with a later
// token.
type issuer struct {
	cfg      JWTConfig
	profiles Profiles
	client   *http.Client

	mu     sync.Mutex
	keys   oidc.KeySet
	failed time.Time
}

// discoveryRetryDelay is the minimum delay between a failed request to an
// issuer and the next one.
const discoveryRetryDelay = 5 * time.Second

func newIssuer(cfg JWTConfig, profiles Profiles) *issuer {
	return &issuer{cfg: cfg, profiles: profiles, client: &http.Client{Timeout: 10 * time.Second, Transport: &issuerCache{next: http.DefaultTransport, kept: map[string]cachedResponse{}}}}
}

// algorithms are the accepted signature algorithms. They are all asymmetric:
// with a symmetric one, anyone could sign tokens with the issuer's public key.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// ready returns the keys of the issuer, which are fetched when they are used.
func (i *issuer) ready() (oidc.KeySet, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys != nil {
		return i.keys, nil
	}
	if time.Since(i.failed) < discoveryRetryDelay {
		return nil, fmt.Errorf("the issuer could not be reached a moment ago")
	}
	// The key set fetches the keys again whenever the issuer rotates them, so
	// its context must outlive this request.
	ctx := oidc.ClientContext(context.Background(), i.client)
	jwks := i.cfg.JWKSURL
	if jwks == "" {
		var err error
		if jwks, err = i.discover(ctx); err != nil {
			i.failed = time.Now()
			return nil, err
		}
	}
	i.keys = oidc.NewRemoteKeySet(ctx, jwks)
	return i.keys, nil
}

// discover returns the URL of the issuer's keys from its OpenID or OAuth
// metadata.
func (i *issuer) discover(ctx context.Context) (string, error) {
	base := strings.TrimSuffix(i.cfg.Issuer, "/")
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	origin := u.Scheme + "://" + u.Host
	var last error
	for _, place := range []string{ // OAuth appends the path of an issuer, OpenID prepends it
		origin + "/.well-known/oauth-authorization-server" + u.EscapedPath(),
		base + "/.well-known/openid-configuration",
		base + "/.well-known/oauth-authorization-server",
	} {
		meta, err := i.fetch(ctx, place)
		switch {
		case err != nil:
			last = err
		case strings.TrimSuffix(meta.Issuer, "/") != base:
			last = fmt.Errorf("the metadata of %s names the issuer %s", base, meta.Issuer)
		case meta.JWKS == "":
			last = fmt.Errorf("the metadata of %s contains no jwks_uri", base)
		default:
			return meta.JWKS, nil
		}
	}
	return "", last
}

type issuerMetadata struct {
	Issuer string `json:"issuer"`
	JWKS   string `json:"jwks_uri"`
}

func (i *issuer) fetch(ctx context.Context, url string) (issuerMetadata, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return issuerMetadata{}, err
	}
	res, err := i.client.Do(req)
	if err != nil {
		return issuerMetadata{}, err
	}
	defer res.Body.Close()
	var meta issuerMetadata
	err = json.NewDecoder(res.Body).Decode(&meta)
	return meta, err
}

// verify returns the identity that a token represents. If the issuer's keys
// cannot be fetched, the error is Unavailable: the token may be valid.
func (i *issuer) verify(ctx context.Context, token string) (identity, error) {
	unavailable := func(err error) error {
		return &tool.Error{Kind: tool.Unavailable, Msg: "tokens cannot be checked now; try again shortly", RetryAfter: discoveryRetryDelay, Err: err}
	}
	remote, err := i.ready()
	if err != nil {
		return identity{}, unavailable(err)
	}
	keys := &issuerKeys{KeySet: remote}
	checked, err := oidc.NewVerifier(i.cfg.Issuer, keys, &oidc.Config{ClientID: i.cfg.Audience, SupportedSigningAlgs: algorithms}).Verify(ctx, token)
	if keys.unavailable != nil {
		return identity{}, unavailable(keys.unavailable)
	}
	if err != nil {
		return identity{}, &tool.Error{Kind: tool.Unauthenticated, Msg: "the token is not valid here: wrong issuer, wrong audience, expired or badly signed", Err: err}
	}
	var claims Claims
	if err := checked.Claims(&claims); err != nil {
		return identity{}, &tool.Error{Kind: tool.Unauthenticated, Msg: "the token's claims cannot be read", Err: err}
	}
	if !claims.wellFormed() {
		return identity{}, &tool.Error{Kind: tool.Unauthenticated, Msg: "the token's scopes cannot be read: scope and scp must be text or lists of text"}
	}
	granted := claims.scopes()
	for _, needed := range i.cfg.Scopes {
		if !slices.Contains(granted, needed) {
			return identity{}, &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf("the token lacks the scope %q", needed)}
		}
	}
	kind, subject := "sub:", checked.Subject
	if subject == "" { // a client id may equal the subject of a person
		kind = "client:"
		subject, _ = claims["client_id"].(string)
	}
	if subject == "" {
		return identity{}, &tool.Error{Kind: tool.Unauthenticated, Msg: "the token has no subject"}
	}
	name, _ := claims["preferred_username"].(string)
	caller := tool.Caller{ID: kind + checked.Issuer + "|" + subject, Name: cmp.Or(name, subject)}
	if !ApplyRules(i.cfg.allRules(), claims, &caller, i.profiles) {
		return identity{}, errNoRule("auth.jwt.rules")
	}
	return identity{caller: caller, credential: "token:" + nameOf(token), expires: checked.Expiry}, nil
}
