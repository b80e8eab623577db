package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"junctor/internal/telemetry"
)

// Fingerprint identifies the connection that the configuration describes:
// upstreams with equal fingerprints are the same server, reached in the same
// way. It does not include settings of calls or of presentation, and reveals no
// secrets.
func (c Config) Fingerprint() string {
	reveal := func(secrets map[string]telemetry.Secret) map[string]string {
		plain := make(map[string]string, len(secrets))
		for k, v := range secrets {
			plain[k] = v.Reveal()
		}
		return plain
	}
	parts := []any{
		c.Name, c.transport(), c.Command, c.Args, reveal(c.Env), c.Cwd, c.InheritEnv,
		c.URL, reveal(c.Headers), c.AuthorizationToken.Reveal(), c.SessionMode,
	}
	if c.OpenAPI != "" {
		parts = append(parts, c.OpenAPI, c.BaseURL, c.Operations, reveal(c.Credentials))
	}
	if c.OAuth != nil {
		plain := *c.OAuth
		plain.ClientSecret = ""
		parts = append(parts, plain, c.OAuth.ClientSecret.Reveal())
	}
	b, err := json.Marshal(parts)
	if err != nil { // strings and lists of them always marshal
		b = []byte(err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// transport returns the transport, with the default if none is configured.
func (c Config) transport() Transport {
	switch {
	case c.OpenAPI != "":
		return OpenAPI
	case c.Transport != "" && (c.Transport != Auto || c.URL != ""):
		return c.Transport
	case c.Command != "":
		return Stdio
	}
	return Auto
}

// remote reports whether the upstream is reached over HTTP.
func (c Config) remote() bool {
	t := c.transport()
	return t == Auto || t == HTTP || t == SSE
}
