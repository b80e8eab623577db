package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// TrustRequest describes what a person is asked to trust.
type TrustRequest struct {
	Path   string   // the file
	Digest string   // of the file and of everything that it reads: .env, env files
	Starts []string // what it would start or connect to, one line each

	// Variables are those of a .env in the working folder that would be used.
	// Such a request does not start anything new.
	Variables []string
}

// TrustStore stores which files, with which content, a person has trusted, in a
// small file in the user's own folder. The zero TrustStore stores nothing.
type TrustStore struct {
	path string
}

// NewTrustStore returns the store in the user's configuration folder.
func NewTrustStore(userDir string) TrustStore {
	if userDir == "" {
		return TrustStore{}
	}
	return TrustStore{path: filepath.Join(userDir, "junctor", "trusted.json")}
}

// maxTrusted is how many contents of one file are stored, so that switching
// between versions does not ask again.
const maxTrusted = 20

type trusted struct {
	Files map[string][]string `json:"files"`
}

// Trusted reports whether the file was trusted with this content.
func (s TrustStore) Trusted(r TrustRequest) (bool, error) {
	t, err := s.read()
	if err != nil {
		return false, err
	}
	return slices.Contains(t.Files[r.Path], r.Digest), nil
}

// Add stores that the file is trusted with this content.
func (s TrustStore) Add(r TrustRequest) error {
	if s.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil { // without it there is nothing to lock
		return fmt.Errorf("store the trusted files: %w", err)
	}
	unlock, err := Lock(s.path)
	if err != nil {
		return err
	}
	defer unlock()
	return s.add(r)
}

// add is like Add for a store that the caller has locked.
func (s TrustStore) add(r TrustRequest) error {
	if s.path == "" {
		return nil
	}
	t, err := s.read()
	if err != nil {
		return err
	}
	digests := slices.DeleteFunc(t.Files[r.Path], func(d string) bool { return d == r.Digest })
	digests = append(digests, r.Digest)
	t.Files[r.Path] = digests[max(0, len(digests)-maxTrusted):]
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return fmt.Errorf("store the trusted files: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("store the trusted files: %w", err)
	}
	if err := WriteFile(s.path, append(data, '\n')); err != nil {
		return fmt.Errorf("store the trusted files: %w", err)
	}
	return nil
}

func (s TrustStore) read() (trusted, error) {
	t := trusted{}
	if s.path != "" {
		data, err := os.ReadFile(s.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return t, fmt.Errorf("read the trusted files: %w", err)
		}
		// A damaged store counts as empty: the person is asked again.
		if err == nil && json.Unmarshal(data, &t) != nil {
			t = trusted{}
		}
	}
	if t.Files == nil {
		t.Files = map[string][]string{}
	}
	return t, nil
}

// digest returns a hash of the parts, such as the files that a person trusts.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d\n", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
