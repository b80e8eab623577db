package httpserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"junctor/internal/setting"
)

// TLSConfig configures TLS for the listener.
type TLSConfig struct {
	// PEM file with the certificate and its chain. If not set, the listener uses plain HTTP.
	Cert string `json:"cert,omitempty"`
	// PEM file with the private key of the certificate. Changes to the contents of either file apply to new connections within a second, if the certificate and the key match.
	Key string `json:"key,omitempty"`
	// Whether to tell browsers to use only HTTPS for one year (HSTS). The header is never sent for localhost or IP addresses.
	HSTS bool `json:"hsts,omitempty"`
}

// Enabled reports whether the listener speaks TLS.
func (c TLSConfig) Enabled() bool { return c.Cert != "" }

// Scheme returns the scheme of the listener's URLs.
func (c TLSConfig) Scheme() string {
	if c.Enabled() {
		return "https"
	}
	return "http"
}

// Validate reports everything that is wrong with the configuration.
func (c TLSConfig) Validate() error {
	var errs []error
	if (c.Cert == "") != (c.Key == "") {
		errs = append(errs, setting.Wrong("key", "tls.cert and tls.key belong together; set both or none"))
	}
	if c.HSTS && c.Cert == "" {
		errs = append(errs, setting.Wrong("hsts", "needs tls.cert and tls.key"))
	}
	return errors.Join(errs...)
}

// certificates reloads the certificate when its files have changed.
type certificates struct {
	cfg TLSConfig
	log *slog.Logger

	mu      sync.Mutex
	loaded  *tls.Certificate
	state   string // of the files when they were loaded
	checked time.Time
}

// fileCheckInterval is the minimum interval between checks of the files.
const fileCheckInterval = time.Second

// UseTLS configures the server for TLS with HTTP/2. It returns an error if the
// certificate cannot be read.
func UseTLS(s *http.Server, cfg TLSConfig, log *slog.Logger) error {
	c := &certificates{cfg: cfg, log: log}
	if err := c.load(); err != nil {
		return err
	}
	s.TLSConfig = &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(time.Now()), nil },
	}
	if cfg.HSTS {
		s.Handler = withHSTS(s.Handler)
	}
	return nil
}

func (c *certificates) load() error {
	cert, err := tls.LoadX509KeyPair(c.cfg.Cert, c.cfg.Key)
	if err != nil {
		return fmt.Errorf("read tls.cert and tls.key: %w", err)
	}
	c.loaded, c.state = &cert, c.fileState()
	return nil
}

// fileState identifies the contents of the files by their times and sizes.
func (c *certificates) fileState() string {
	var b strings.Builder
	for _, path := range []string{c.cfg.Cert, c.cfg.Key} {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%d %d ", info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}

// current returns the certificate. If changed files cannot be loaded, for
// example because the new key is not written yet, the previous certificate
// remains in use.
func (c *certificates) current(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.checked) < fileCheckInterval {
		return c.loaded
	}
	c.checked = now
	if c.fileState() == c.state {
		return c.loaded
	}
	if err := c.load(); err != nil {
		c.log.Error("cannot load the changed certificate; the previous one stays in use", "err", err)
		return c.loaded
	}
	c.log.Info("changed certificate loaded", "file", c.cfg.Cert)
	return c.loaded
}

// withHSTS tells browsers to use only https for this host. It is not sent for
// local names and addresses, because other services on the machine share them.
func withHSTS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
		if host != "" && host != "localhost" && !strings.HasSuffix(host, ".localhost") && net.ParseIP(host) == nil {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}
