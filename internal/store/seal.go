package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// KeySize is the length of a sealing key in bytes.
const KeySize = 32

// ErrSealed means that a secret cannot be opened with the keys of this Sealer.
var ErrSealed = errors.New("the secret was encrypted with another key, or was altered")

// Sealer encrypts, with AES-256-GCM, secrets that the store must not see. A
// sealed secret is bound to its name: it cannot be opened under another one.
type Sealer struct {
	keys []sealKey // the first seals; all open
}

type sealKey struct {
	id   [4]byte
	aead cipher.AEAD
}

// sealVersion is the first byte of every sealed secret: version, key id, nonce,
// ciphertext.
const sealVersion = 1

// NewSealer returns a Sealer that seals with key, and opens secrets that were
// sealed with key or with one of the older keys, so that keys can be rotated.
func NewSealer(key []byte, older ...[]byte) (*Sealer, error) {
	s := &Sealer{}
	for _, k := range append([][]byte{key}, older...) {
		if len(k) != KeySize {
			return nil, fmt.Errorf("a sealing key must have %d bytes, but this one has %d; make one with: openssl rand -base64 32", KeySize, len(k))
		}
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, fmt.Errorf("sealing key: %w", err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("sealing key: %w", err)
		}
		sum := sha256.Sum256(append([]byte("junctor seal key id\x00"), k...))
		s.keys = append(s.keys, sealKey{id: [4]byte(sum[:4]), aead: aead})
	}
	return s, nil
}

// Seal encrypts plain under name.
func (s *Sealer) Seal(name string, plain []byte) []byte {
	k := s.keys[0]
	out := make([]byte, 0, 1+len(k.id)+k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	out = append(out, sealVersion)
	out = append(out, k.id[:]...)
	out = out[:len(out)+k.aead.NonceSize()]
	nonce := out[len(out)-k.aead.NonceSize():]
	rand.Read(nonce) // never fails: crypto/rand ends the program instead
	return k.aead.Seal(out, nonce, plain, []byte(name))
}

// Open decrypts a secret that Seal encrypted under the same name. The error is
// ErrSealed when none of the keys fits or the secret was altered.
func (s *Sealer) Open(name string, sealed []byte) ([]byte, error) {
	for _, k := range s.keys {
		head := 1 + len(k.id)
		n := k.aead.NonceSize()
		if len(sealed) < head+n || sealed[0] != sealVersion || [4]byte(sealed[1:head]) != k.id {
			continue
		}
		if plain, err := k.aead.Open(nil, sealed[head:head+n], sealed[head+n:], []byte(name)); err == nil {
			return plain, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, ErrSealed)
}

// Stale reports whether a sealed secret was sealed with an older key and
// should be re-encrypted.
func (s *Sealer) Stale(sealed []byte) bool {
	id := s.keys[0].id
	return len(sealed) < 1+len(id) || [4]byte(sealed[1:1+len(id)]) != id
}

// ParseKey reads a sealing key written as base64 or as hexadecimal digits.
func ParseKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if b, err := hex.DecodeString(text); err == nil && len(b) == KeySize {
		return b, nil
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := enc.DecodeString(text); err == nil && len(b) == KeySize {
			return b, nil
		}
	}
	return nil, errors.New("a sealing key is 32 random bytes as base64 or hexadecimal; make one with: openssl rand -base64 32")
}

// KeyFile returns the sealing key in a file. If there is no file, it creates
// one (mode 0600) with a new key; processes that start simultaneously agree on
// one key. A file that other users may read is an error.
func KeyFile(path string) ([]byte, error) {
	for {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			key := make([]byte, KeySize)
			rand.Read(key) // never fails: crypto/rand ends the program instead
			if err := CreateFile(path, base64.StdEncoding.EncodeToString(key)+"\n"); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, fmt.Errorf("make key file %s: %w", path, err)
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("key file: %w", err)
		}
		if err := private(path, info); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("key file: %w", err)
		}
		key, err := ParseKey(string(text))
		if err != nil {
			return nil, fmt.Errorf("key file %s: %w", path, err)
		}
		return key, nil
	}
}

// CreateFile creates a file that only this user can read. The creation is
// atomic: the file is never seen half-written, and of two processes one wins;
// the other gets [fs.ErrExist].
func CreateFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(text)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Link(tmp.Name(), path)
}
