package upstream

import (
	"time"

	"junctor/internal/child"
	"junctor/internal/mcp"
)

// State is the state of an upstream's connection.
type State string

// The states.
const (
	Connecting   State = "connecting" // for the first time
	Connected    State = "connected"
	Disconnected State = "disconnected"
	AuthRequired State = "auth_required"
	Disabled     State = "disabled"
)

// Status is the state of an upstream.
type Status struct {
	Name  string    `json:"name"`
	State State     `json:"status"`
	Phase string    `json:"phase,omitempty"` // installing while a package runner downloads the server; otherwise absent
	Since time.Time `json:"since,omitzero"`  // when the status last changed

	// Reason is why the upstream is not connected; absent if it is. It contains
	// no secrets or paths.
	Reason   string    `json:"reason,omitempty"`
	Attempts int       `json:"attempts,omitempty"` // number of attempts to connect since the last connection
	NextTry  time.Time `json:"nextTry,omitzero"`   // when the next attempt to connect is made

	// LastFailure is the latest Reason, and FailedAt is its time. They remain
	// after the upstream has reconnected.
	LastFailure string    `json:"lastFailure,omitempty"`
	FailedAt    time.Time `json:"failedAt,omitzero"`
	Lost        int       `json:"lost,omitempty"` // number of connections that ended unexpectedly

	// Node is the gateway process that runs the upstream if it is a singleton
	// and runs elsewhere; otherwise absent.
	Node string `json:"node,omitempty"`

	Transport Transport `json:"transport"`
	Protocol  string    `json:"protocol,omitempty"` // negotiated version of MCP
	Era       string    `json:"era,omitempty"`      // handshake or stateless, depending on the version of MCP
	Server    string    `json:"serverName,omitempty"`
	Title     string    `json:"serverTitle,omitempty"`
	Version   string    `json:"serverVersion,omitempty"`

	PID       int             `json:"pid,omitempty"` // process id of a local server
	Isolation child.Isolation `json:"isolation,omitempty"`
	SeesData  string          `json:"seesData,omitempty"`   // why the process can read Junctor's data folder; absent if it cannot
	Stderr    []string        `json:"stderr,omitempty"`     // last lines of the standard error of the process; set by Diagnose
	Stray     int64           `json:"strayLines,omitempty"` // number of lines on standard output that were not messages
	LastStray string          `json:"lastStray,omitempty"`  // the last such line; set by Diagnose
	Oversized int64           `json:"oversized,omitempty"`  // number of messages that exceeded the size limit

	Tools     int      `json:"tools"`               // number of tools
	Problems  []string `json:"problems,omitempty"`  // problems with the tools of the server
	LatencyMs float64  `json:"latencyMs,omitempty"` // duration of the last simple request, in milliseconds
	InFlight  int      `json:"inFlight,omitempty"`  // number of requests in progress
	Sessions  int      `json:"sessions,omitempty"`  // number of sessions of single callers

	// Login is "caller" if each caller has its own login; otherwise absent.
	// SignedIn reports whether the caller that requested the status has one.
	Login    LoginScope `json:"login,omitempty"`
	SignedIn bool       `json:"signedIn,omitempty"`
}

func era(protocol string) string {
	switch {
	case protocol == "":
		return ""
	case mcp.Stateless(protocol):
		return "stateless"
	}
	return "handshake"
}

// status returns the current status without the output of the program.
func (u *upstream) status() Status {
	st, _ := u.statusAndConn()
	u.s.redact(&st.Reason, &st.LastFailure)
	return st
}

// diagnose returns the current status with the output of the program.
func (u *upstream) diagnose() Status {
	st, c := u.statusAndConn()
	if c != nil {
		if s := c.lastStray.Load(); s != nil {
			st.LastStray = *s
		}
		if c.process != nil {
			st.Stderr = c.process.Stderr()
		}
	}
	u.s.redact(&st.Reason, &st.LastFailure, &st.LastStray)
	for i := range st.Stderr {
		u.s.redact(&st.Stderr[i])
	}
	return st
}

// statusAndConn returns the status, not yet redacted, and the connection whose
// program it is about: the last one, when there is none.
func (u *upstream) statusAndConn() (Status, *conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	st := Status{
		Name: u.cfg.Name, State: u.state, Since: u.since, Reason: u.down.message(),
		Attempts: u.attempts, NextTry: u.nextTry, LastFailure: u.lastFailure, FailedAt: u.failedAt, Lost: u.lost,
		Node: u.owner, Transport: u.cfg.transport(), Tools: u.tools, Problems: u.problems,
		LatencyMs: float64(u.latency.Microseconds()) / 1000, InFlight: int(u.inFlight.Load()), Sessions: len(u.sessions),
	}
	if u.cfg.PersonalLogins() {
		st.Login = LoginPerCaller
	}
	if d, ok := u.installing(); ok {
		st.Phase, st.Reason = "installing", stillInstalling(d)
	}
	c := u.conn
	if c == nil {
		c = u.last // its stderr contains the reason
	} else {
		info := c.client.Info()
		st.Protocol, st.Era = info.Protocol, era(info.Protocol)
		st.Server, st.Title, st.Version = info.Name, info.Title, info.Version
	}
	if c != nil {
		c.describe(&st)
	}
	return st, c
}

// connecting reports whether the first connection is being made.
func (u *upstream) connecting() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state == Connecting
}

// redact masks secrets in what came from the server's side.
func (s *Supervisor) redact(texts ...*string) {
	if s.opts.Redact == nil {
		return
	}
	for _, text := range texts {
		if *text != "" {
			*text = s.opts.Redact(*text)
		}
	}
}
