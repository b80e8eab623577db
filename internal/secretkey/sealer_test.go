package secretkey

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zalando/go-keyring"

	"junctor/internal/telemetry"
)

func TestSealerOfUnlockedKeyring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		keyring.MockInit()
		before, err := Sealer("", dir, true)() // creates the key
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "secret.key")
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSpace(strings.TrimPrefix(string(file), inKeyring))
		key, err := keyring.Get(keyringService, name)
		if err != nil {
			t.Fatal(err)
		}

		keyring.MockInitWithError(errors.New("locked"))
		sealer := Sealer("", dir, true)
		if _, err := sealer(); err == nil {
			t.Fatal("a locked keyring returned a key")
		}
		keyring.MockInit() // unlocked
		if err := keyring.Set(keyringService, name, key); err != nil {
			t.Fatal(err)
		}
		if _, err := sealer(); err == nil {
			t.Error("the keyring was asked again at once")
		}
		time.Sleep(retryDelay)
		after, err := sealer()
		if err != nil {
			t.Fatalf("after the keyring was unlocked: %v", err)
		}
		if plain, err := after.Open("x", before.Seal("x", []byte("secret"))); err != nil || string(plain) != "secret" {
			t.Errorf("the unlocked key opens %q, %v", plain, err)
		}
		keyring.MockInitWithError(errors.New("locked"))
		time.Sleep(retryDelay)
		if again, err := sealer(); err != nil || again != after {
			t.Errorf("a key that was read is not kept: %v", err)
		}
	})
}

func TestParse(t *testing.T) {
	const key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	hex := strings.Repeat("0f", 32)
	for name, tt := range map[string]struct {
		in   string
		n    int
		says string // "" means success
	}{
		"one":        {in: key, n: 1},
		"several":    {in: key + ", " + hex, n: 2},
		"passphrase": {in: "bad", says: "JUNCTOR_SECRET_KEY is not valid: a sealing key is 32 random bytes"},
		"second":     {in: key + ",bad", says: "key 2 of 2 in JUNCTOR_SECRET_KEY is not valid: a sealing key is 32 random bytes"},
		"missing":    {in: key + ",", says: "key 2 of 2 in JUNCTOR_SECRET_KEY is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(telemetry.Secret(tt.in))
			if len(got) != tt.n || (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Parse(%q) = %d keys, %v; want %d, an error that says %q", tt.in, len(got), err, tt.n, tt.says)
			}
			if err != nil && strings.Contains(err.Error(), "bad") {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}
