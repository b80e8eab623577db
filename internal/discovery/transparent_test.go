package discovery

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/listing"
)

// stuck are servers that do not accept notifications.
type stuck struct {
	prompters
	waiting *atomic.Int64
}

func (s stuck) Notify(ctx context.Context, _, _, _ string, _ json.RawMessage) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

func TestNotificationsOfClientsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{waiting: new(atomic.Int64)}
		f := New(Options{Tools: listing.New(listing.Options{Catalog: catalog.New(nil, nil), Upstreams: s}), Calls: s, Upstreams: s, Config: DefaultConfig(), Log: nolog})
		v := &transparentView{face: f, name: "stuck"}
		notify := func(times int) {
			for range times {
				v.Notified(t.Context(), nil, "notifications/vendor", nil)
			}
			synctest.Wait()
		}
		notify(200)
		if n := s.waiting.Load(); n != 64 {
			t.Errorf("%d notifications wait for the server, want 64", n)
		}
		time.Sleep(time.Minute) // all of them time out
		notify(1)
		if n := s.waiting.Load(); n != 1 {
			t.Errorf("%d notifications wait for the server after the others ended", n)
		}
		time.Sleep(time.Minute)
	})
}
