package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"junctor/internal/address"
	"junctor/internal/terminal"

	"github.com/spf13/cobra"
)

// healthCommand is for health checks by container engines, because the image
// contains no other HTTP client.
func (c *cli) healthCommand() *cobra.Command {
	var base string
	var live bool
	cmd := &cobra.Command{
		Use: "health", Short: "Check whether a gateway is ready", Args: noArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			transport := http.DefaultTransport
			if base == "" {
				cfg, err := c.load(c.options(useWorkDir))
				if err != nil {
					return err
				}
				base = cfg.TLS.Scheme() + "://" + reachable(cfg.Listen)
				if cfg.TLS.Enabled() {
					transport = withoutVerification()
				}
			}
			path := "/health/ready"
			if live {
				path = "/health/live"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
			defer cancel()
			base = strings.TrimSuffix(base, "/")
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
			if err != nil {
				return usageError{err}
			}
			res, err := transport.RoundTrip(req)
			if err == nil && res.StatusCode == http.StatusBadRequest && isLoopbackHTTP(req.URL) {
				// The gateway may require TLS, about which the image's health
				// check knows nothing.
				_ = res.Body.Close()
				req.URL.Scheme = "https"
				res, err = withoutVerification().RoundTrip(req)
			}
			if err != nil {
				return fmt.Errorf("no gateway at %s: %w", base, err)
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(io.LimitReader(res.Body, 4096)) // the status is enough if this fails
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("not ready: %s %s", res.Status, terminal.OneLine(string(body)))
			}
			c.Note("ready")
			return nil
		},
	}
	cmd.Flags().StringVar(&base, "url", "", "the gateway's `address`; default: that of the configuration")
	cmd.Flags().BoolVar(&live, "live", false, "check liveness instead of readiness")
	return cmd
}

// withoutVerification accepts any certificate: that of the gateway is for a
// different name than the address, and the request contains no secret.
func withoutVerification() http.RoundTripper {
	return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}

func isLoopbackHTTP(u *url.URL) bool {
	class, ok := address.OfHost(u.Hostname())
	return u.Scheme == "http" && ok && class == address.Loopback
}

// reachable returns the address for connecting to listen from this machine: an
// unspecified host is replaced by a loopback address.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
