package mcpclient

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
)

func TestNegotiation(t *testing.T) {
	hinted := func(version string) Options { return Options{Protocol: version} }
	unsupported := func(versions string) string { return `{"supported":[` + versions + `],"requested":"2026-07-28"}` }
	for name, tt := range map[string]struct {
		o      Options
		server func(*script)
		want   string // version, or what the error says
	}{
		"method not found": {server: (*script).handshakeEra, want: mcp.Version20250618},
		"invalid params": {server: func(s *script) {
			s.refuse(s.want("server/discover"), mcp.CodeInvalidParams, "not initialized", "")
			s.result(s.want("initialize"), initResult)
			s.want("notifications/initialized")
		}, want: mcp.Version20250618},
		"garbage for a result": {server: func(s *script) {
			s.result(s.want("server/discover"), `[1,"x"]`)
			s.result(s.want("initialize"), initResult)
			s.want("notifications/initialized")
		}, want: mcp.Version20250618},
		"modern": {server: func(s *script) { s.result(s.want("server/discover"), discoverResult) }, want: mcp.Version20260728},
		"modern at the second try": {server: func(s *script) {
			s.refuse(s.want("server/discover"), mcp.CodeUnsupportedProtocol, "no", unsupported(`"2026-07-28"`))
			s.result(s.want("server/discover"), discoverResult)
		}, want: mcp.Version20260728},
		"dual, old only today": {server: func(s *script) {
			s.refuse(s.want("server/discover"), mcp.CodeUnsupportedProtocol, "no", unsupported(`"2025-11-25"`))
			s.result(s.want("initialize"), initResult)
			s.want("notifications/initialized")
		}, want: mcp.Version20250618},
		"nothing in common": {server: func(s *script) {
			s.refuse(s.want("server/discover"), mcp.CodeUnsupportedProtocol, "no", unsupported(`"2031-01-01"`))
		}, want: "no protocol version"},
		"hint saves the probe": {o: hinted(mcp.Version20250326), server: func(s *script) {
			if m := s.want("initialize"); rawjson.FieldString(m.Params, "protocolVersion") != mcp.Version20251125 {
				s.t.Errorf("proposed %s", m.Params)
			}
			s.result(mcp.Message{ID: "1"}, initResult)
			s.want("notifications/initialized")
		}, want: mcp.Version20250618},
		"hint is out of date": {o: hinted(mcp.Version20250326), server: func(s *script) {
			s.refuse(s.want("initialize"), mcp.CodeMethodNotFound, "gone", "")
			s.result(s.want("server/discover"), discoverResult)
		}, want: mcp.Version20260728},
		"refused in both": {o: hinted(mcp.Version20250326), server: func(s *script) {
			s.refuse(s.want("initialize"), mcp.CodeInvalidRequest, "go away", "")
			s.refuse(s.want("server/discover"), mcp.CodeMethodNotFound, "no", "")
		}, want: "go away"},
		"pinned new": {o: Options{Protocol: mcp.Version20260728, Pin: true}, server: func(s *script) {
			s.refuse(s.want("server/discover"), mcp.CodeMethodNotFound, "no", "")
		}, want: "does not speak"},
		"pinned old": {o: Options{Protocol: mcp.Version20250326, Pin: true}, server: func(s *script) {
			s.refuse(s.want("initialize"), mcp.CodeInvalidRequest, "go away", "")
		}, want: "go away"},
		"from before the first": {o: hinted(mcp.Version20241105), server: func(s *script) {
			s.result(s.want("initialize"), `{"protocolVersion":"2024-10-07","capabilities":{},"serverInfo":{}}`)
			s.want("notifications/initialized")
		}, want: "2024-10-07"},
		"from the future": {o: hinted(mcp.Version20241105), server: func(s *script) {
			s.result(s.want("initialize"), `{"protocolVersion":"2031-01-01"}`)
		}, want: "2031-01-01"},
		"no answer to initialize": {o: hinted(mcp.Version20241105), server: func(s *script) {
			s.result(s.want("initialize"), `{}`)
		}, want: "check that it is an MCP server"},
		"leaves": {server: func(s *script) {
			s.want("server/discover")
			s.link.Close()
		}, want: "during the handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := play(t, tt.o, tt.server)
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) || strings.HasPrefix(tt.want, "20") && tt.want != "2031-01-01" {
					t.Errorf("Connect: %v, want %q", err, tt.want)
				}
				if (name == "leaves") != errors.Is(err, ErrHandshakeEra) {
					t.Errorf("%v: is ErrHandshakeEra: %v", err, errors.Is(err, ErrHandshakeEra))
				}
				return
			}
			if got := c.Info().Protocol; got != tt.want {
				t.Errorf("Protocol = %q, want %q", got, tt.want)
			}
		})
	}
}

// A server that does not answer server/discover is sent initialize too.
func TestNegotiationWithUnresponsiveServer(t *testing.T) {
	for name, tt := range map[string]struct {
		server func(*script)
		want   string
	}{
		"handshake era, silent": {func(s *script) {
			s.want("server/discover")
			s.result(s.want("initialize"), initResult)
			s.want("notifications/initialized")
			s.want("notifications/cancelled")
		}, mcp.Version20250618},
		"modern, slow to start": {func(s *script) {
			probe := s.want("server/discover")
			hello := s.want("initialize")
			time.Sleep(5 * time.Second) // fake time
			s.result(probe, discoverResult)
			s.refuse(hello, mcp.CodeMethodNotFound, "gone", "")
		}, mcp.Version20260728},
		"modern, refuses initialize first": {func(s *script) {
			probe := s.want("server/discover")
			s.refuse(s.want("initialize"), mcp.CodeMethodNotFound, "gone", "")
			s.result(probe, discoverResult)
		}, mcp.Version20260728},
		"both eras, slow to start": {func(s *script) {
			probe := s.want("server/discover")
			hello := s.want("initialize")
			time.Sleep(5 * time.Second) // fake time
			s.result(probe, discoverResult)
			s.result(hello, initResult)
			_, _ = s.link.Receive() // notifications/initialized, if the client has sent it
		}, mcp.Version20260728},
		"old, refuses late": {func(s *script) {
			probe := s.want("server/discover")
			hello := s.want("initialize")
			s.refuse(probe, mcp.CodeMethodNotFound, "no", "")
			s.result(hello, initResult)
			s.want("notifications/initialized")
		}, mcp.Version20250618},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := mustPlay(t, Options{DiscoverTimeout: 3 * time.Second}, tt.server)
				if got := c.Info().Protocol; got != tt.want {
					t.Errorf("Protocol = %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// A slow server that closes the connection on server/discover is recognized
// even if initialize was sent meanwhile.
func TestSlowServerClosesOnDiscover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := play(t, Options{DiscoverTimeout: 3 * time.Second}, func(s *script) {
			s.want("server/discover")
			s.want("initialize")
			s.link.Close()
		})
		if !errors.Is(err, ErrHandshakeEra) {
			t.Errorf("Connect: %v, want ErrHandshakeEra", err)
		}
	})
}

// TestPinnedToTheNewEra: a server that does not answer server/discover is not
// sent initialize, which cannot negotiate the version.
func TestPinnedToTheNewEra(t *testing.T) {
	for name, tt := range map[string]struct {
		answers time.Duration
		ok      bool
	}{"slow": {2 * time.Second, true}, "silent": {time.Minute, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Options{Protocol: mcp.Version20260728, Pin: true, DiscoverTimeout: 3 * time.Second}
				c, err := play(t, o, func(s *script) {
					probe := s.want("server/discover")
					answer := time.AfterFunc(tt.answers, func() { s.result(probe, discoverResult) }) // fake time
					defer answer.Stop()
					for {
						m, err := s.link.Receive()
						if err != nil {
							return
						}
						if m.Method != mcp.MethodCancelled {
							s.t.Errorf("the client sent %s", m.Method)
						}
					}
				})
				if (err == nil) != tt.ok {
					t.Fatalf("Connect = %v, want success %v", err, tt.ok)
				}
				if err == nil {
					if got := c.Info().Protocol; got != mcp.Version20260728 {
						t.Errorf("Protocol = %q", got)
					}
					c.Close()
				}
			})
		})
	}
}
