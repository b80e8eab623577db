package auth

import (
	"strings"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// who returns the caller's kind and name, for tests that do not know ids.
func who(c *tool.Caller) string {
	if kind, _, ok := strings.Cut(c.ID, ":"); ok {
		return kind + ":" + c.Name
	}
	return c.ID
}

// TestKeysWithSameNameAreDifferentCallers creates two keys with the same name
// in succession.
func TestKeysWithSameNameAreDifferentCallers(t *testing.T) {
	keys := &memory{}
	first := keys.add(t, "bob", func(k *store.Key) {})
	g := gate(keys, nil)
	_, before := ask(g, set("X-API-Key", first))
	second := keys.add(t, "bob", func(k *store.Key) { k.Created = time.Now() })
	_, after := ask(g, set("X-API-Key", second))
	if before == nil || after == nil || before.ID == after.ID || before.Name != "bob" || after.Name != "bob" {
		t.Errorf("two keys of one name are %+v and %+v, want two callers", before, after)
	}
	fixed := func(key telemetry.Secret) string {
		g := gate(&memory{}, func(o *Options) { o.Config.Keys = []KeyConfig{{Name: "bob", Key: key}} })
		_, c := ask(g, set("X-API-Key", key.Reveal()))
		if c == nil {
			t.Fatal("a key of the file is refused")
		}
		return c.ID
	}
	if one, two := fixed("a-key-of-the-file"), fixed("another-key-of-the-file"); one == two || one == after.ID {
		t.Errorf("keys of the file with one name are %s and %s, want two callers", one, two)
	}
}
