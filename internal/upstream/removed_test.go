package upstream_test

import (
	"fmt"
	"testing"

	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

// removalSink counts the servers that can still be found when their removal is
// reported. A sink that queries the supervisor in reaction must not find them.
type removalSink struct {
	*fixture
	still []string
}

func (s *removalSink) Removed(server string) {
	found := s.Has(server)
	s.update(func() {
		s.removed = append(s.removed, server)
		if found {
			s.still = append(s.still, server)
		}
	})
}

func TestRemovedIsReportedAfterTheServerCannotBeFound(t *testing.T) {
	t.Parallel()
	const n = 100
	dialers := map[string]upstream.Dialer{}
	var configs []upstream.Config
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		configs = append(configs, inside(name))
		dialers[name] = (&dialer{Server: upstreamtest.New(upstreamtest.Script{})}).dial
	}
	r := newFixture(t, upstream.Options{})
	sink := &removalSink{fixture: r}
	r.Supervisor = upstream.NewSupervisor(configs, upstream.Options{Sink: sink, InProcess: dialers})
	r.run()
	r.Await(t.Context())
	r.Apply(nil)
	r.eventually("all servers are removed", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.removed) == n
	})
	if len(sink.still) > 0 {
		t.Errorf("%d servers could be found after their removal was reported, such as %q", len(sink.still), sink.still[0])
	}
}
