package auth

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"junctor/internal/store"
	"junctor/internal/telemetry"
)

// localTokenFile is the file of the local token in the data folder.
const localTokenFile = "page.token"

// LocalToken returns the token that gives the page on this machine
// administrator's rights. It is random, one per data folder, and created if it
// does not exist. Removing the file and restarting invalidates the token and
// its sessions.
func LocalToken(dataDir string) (telemetry.Secret, error) {
	path := filepath.Join(dataDir, localTokenFile)
	for {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			if err := store.CreateFile(path, rand.Text()+"\n"); err != nil && !errors.Is(err, fs.ErrExist) {
				return "", fmt.Errorf("create the page's token: %w", err)
			}
			continue
		}
		if err != nil {
			return "", fmt.Errorf("the page's token: %w", err)
		}
		if !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			return "", fmt.Errorf("the page's token file %s is accessible to other users or not a regular file (%v); remove it, and a new one is created", path, info.Mode())
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("the page's token: %w", err)
		}
		token := strings.TrimSpace(string(text))
		if len(token) < minKey {
			return "", fmt.Errorf("the page's token %s is shorter than %d characters; remove it, and a new one is created", path, minKey)
		}
		return telemetry.Secret(token), nil
	}
}

// PageURL returns the address of the page on a listener. On a loopback
// listener the address contains the local token and is secret.
func PageURL(scheme, listen, dataDir string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("the address of the page: %w", err)
	}
	if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	page := url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Path: "/"}
	if IsLoopback(listen) {
		token, err := LocalToken(dataDir)
		if err != nil {
			return "", err
		}
		page.RawQuery = url.Values{"token": {token.Reveal()}}.Encode()
	}
	return page.String(), nil
}

// fingerprint identifies a local token without revealing it.
func fingerprint(token telemetry.Secret) string {
	return hex.EncodeToString(hash("junctor local token\x00" + token.Reveal()))
}
