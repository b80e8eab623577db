package authserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"junctor/internal/auth"
	"junctor/internal/store"
	"junctor/internal/tool"
)

const (
	// SpaceGrants is the space of consents in the store.
	SpaceGrants = auth.SpaceGrants

	// grantTTL is how long a consent lasts after the last refresh.
	grantTTL = 30 * 24 * time.Hour
	// maxGrants bounds the consents of one person; the least recently used are
	// removed first.
	maxGrants = 100

	grantCacheTTL = time.Second // how long a cached grant is used without another lookup
	maxKnown      = 10_000
)

// Grant is a person's consent that lets a client act for them.
type Grant struct {
	ID         string    `json:"id"`
	Client     string    `json:"clientId"`
	ClientName string    `json:"client"`               // name of the client
	ClientHost string    `json:"clientHost,omitempty"` // host that vouches for the client, that of its metadata document; absent for a registered client
	Owner      string    `json:"owner"`                // id of the person
	Name       string    `json:"caller"`               // name of the person
	Profile    string    `json:"profile,omitempty"`    // profile to which the client is limited; absent for none
	Resource   string    `json:"resource"`
	Redirect   string    `json:"redirect"`
	Created    time.Time `json:"created"`
	Used       time.Time `json:"lastUsed"` // when tokens were last issued
	Expires    time.Time `json:"expires"`
}

// grantRecord is a stored Grant. Refresh tokens are stored as hashes.
type grantRecord struct {
	Grant
	Person  auth.Person `json:"person"`
	Refresh string      `json:"refresh"`           // the current refresh token
	Old     []string    `json:"old,omitempty"`     // replaced ones, latest last
	Rotated time.Time   `json:"rotated,omitempty"` // when the latest of Old was replaced
}

// maxReplaced bounds the replaced refresh tokens that are recognized as such.
const maxReplaced = 50

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// grants stores consents and caches those in use for grantCacheTTL.
type grants struct {
	store store.Values
	now   func() time.Time

	mu    sync.Mutex
	known map[string]knownGrant
}

type knownGrant struct {
	record  grantRecord
	checked time.Time
}

var errNoGrant = errors.New("unknown, expired or revoked consent")

// load reads a grant and its version from the store.
func (g *grants) load(ctx context.Context, id string) (grantRecord, int64, error) {
	v, err := g.store.Value(ctx, SpaceGrants, id)
	if errors.Is(err, store.ErrNotFound) {
		g.forget(id)
		return grantRecord{}, 0, errNoGrant
	}
	if err != nil {
		return grantRecord{}, 0, fmt.Errorf("read a consent: %w", err)
	}
	var rec grantRecord
	if err := json.Unmarshal(v.Data, &rec); err != nil {
		return grantRecord{}, 0, fmt.Errorf("read a consent: %w", err)
	}
	rec.Expires = v.Expires
	return rec, v.Version, nil
}

// find returns a grant, from the cache if it was read within grantCacheTTL.
func (g *grants) find(ctx context.Context, id string) (grantRecord, error) {
	now := g.now()
	g.mu.Lock()
	k, ok := g.known[id]
	g.mu.Unlock()
	if ok && now.Sub(k.checked) < grantCacheTTL {
		return k.record, nil
	}
	rec, _, err := g.load(ctx, id)
	if err != nil {
		return grantRecord{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= maxKnown {
		clear(g.known)
	}
	g.known[id] = knownGrant{rec, now}
	return rec, nil
}

func (g *grants) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, id)
}

func (g *grants) put(ctx context.Context, rec grantRecord, ifVersion int64) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	_, err = g.store.PutValue(ctx, store.Value{Space: SpaceGrants, Name: rec.ID, Data: data, Expires: rec.Expires}, ifVersion)
	return err
}

// end removes a grant.
func (g *grants) end(ctx context.Context, id string) error {
	g.forget(id)
	return g.store.DeleteValue(ctx, SpaceGrants, id, store.AnyVersion)
}

// trim removes the least recently used grants of a person who has too many.
func (g *grants) trim(ctx context.Context, owner string) error {
	all, err := List(ctx, g.store)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(o Grant) bool { return o.Owner != owner })
	for len(all) >= maxGrants {
		if err := g.end(ctx, all[0].ID); err != nil {
			return err
		}
		all = all[1:]
	}
	return nil
}

// List returns all consents in the store, the least recently used first.
func List(ctx context.Context, values store.Values) ([]Grant, error) {
	list, err := values.Values(ctx, SpaceGrants)
	if err != nil {
		return nil, err
	}
	out := []Grant{}
	for _, v := range list {
		var rec grantRecord
		if json.Unmarshal(v.Data, &rec) == nil {
			rec.Expires = v.Expires
			out = append(out, rec.Grant)
		}
	}
	slices.SortStableFunc(out, func(a, b Grant) int { return a.Used.Compare(b.Used) })
	return out, nil
}

// Revoke removes a consent from the store and records that in the audit log.
// Every node ends the requests that use it within two seconds.
func Revoke(ctx context.Context, values store.Values, g Grant, audit func(ctx context.Context, action, target string, detail any)) error {
	if err := values.DeleteValue(ctx, SpaceGrants, g.ID, store.AnyVersion); err != nil {
		return err
	}
	audit(ctx, "client.revoke", g.ID, g.detail())
	return nil
}

// detail returns the audit log's details of a grant. The client chooses its id
// and redirect URI; they are shortened so that the entry stays within its size
// limit.
func (g Grant) detail() map[string]string {
	return map[string]string{
		"client": g.ClientName, "clientId": tool.Shorten(g.Client, 300), "redirect": tool.Shorten(g.Redirect, 300),
		"person": g.Name, "profile": g.Profile,
	}
}
