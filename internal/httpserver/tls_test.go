package httpserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a certificate for gateway.test with the given serial
// number.
func writeCertificate(t *testing.T, cfg TLSConfig, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "gateway.test"}, DNSNames: []string{"gateway.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cfg.Cert: {Type: "CERTIFICATE", Bytes: der}, cfg.Key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLSWithHTTP2(t *testing.T) {
	dir := t.TempDir()
	cfg := TLSConfig{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), HSTS: true}
	server := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }), slog.New(slog.DiscardHandler))
	if err := UseTLS(server, cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "tls.cert") {
		t.Errorf("without files: %v", err)
	}
	writeCertificate(t, cfg, 1)
	if err := UseTLS(server, cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(ln, "", "") }()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, ln.Addr().String())
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	for host, hsts := range map[string]bool{"gateway.test": true, "localhost": false, "app.localhost": false, "127.0.0.1": false, "[::1]": false} {
		res, err := client.Get("https://" + host + "/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(body) != "HTTP/2.0" || (res.Header.Get("Strict-Transport-Security") != "") != hsts {
			t.Errorf("%s: %s, %v, %v", host, body, res.Header, err)
		}
	}
}

func TestChangedCertificateIsUsed(t *testing.T) {
	dir := t.TempDir()
	cfg := TLSConfig{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	writeCertificate(t, cfg, 1)
	c := &certificates{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	if err := c.load(); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	serial := func() int64 {
		t.Helper()
		now = now.Add(2 * fileCheckInterval)
		leaf, err := x509.ParseCertificate(c.current(now).Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.Int64()
	}
	touch := func(at time.Time) { // file times may have a coarse resolution
		t.Helper()
		for _, path := range []string{cfg.Cert, cfg.Key} {
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := serial(); n != 1 {
		t.Errorf("serial %d", n)
	}
	writeCertificate(t, cfg, 2)
	touch(now.Add(time.Hour))
	if n := serial(); n != 2 {
		t.Errorf("after a change: serial %d", n)
	}
	if err := os.WriteFile(cfg.Key, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := serial(); n != 2 {
		t.Errorf("with a broken file: serial %d", n)
	}
	writeCertificate(t, cfg, 3)
	touch(now.Add(2 * time.Hour))
	if n := serial(); n != 3 {
		t.Errorf("after the file was corrected: serial %d", n)
	}
}

func TestTLSConfigProblems(t *testing.T) {
	for want, cfg := range map[string]TLSConfig{"": {}, "belong together": {Cert: "a"}, "needs tls.cert": {HSTS: true}} {
		err := cfg.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
