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
	Phase string    `json:"phase,omitempty"` // "installing" while a package runner downloads the server
	Since time.Time `json:"since,omitzero"`  // of the state

	// Reason is why the upstream is not connected. It contains no secrets and
	// no paths.
	Reason   string    `json:"reason,omitempty"`
	Attempts int       `json:"attempts,omitempty"` // to connect, since it was last connected
	NextTry  time.Time `json:"nextTry,omitzero"`

	// LastFailure is the latest Reason and FailedAt its time. They are kept
	// while the upstream is connected again.
	LastFailure string    `json:"lastFailure,omitempty"`
	FailedAt    time.Time `json:"failedAt,omitzero"`
	Lost        int       `json:"lost,omitempty"` // connections that ended by themselves

	// Node is the process that runs a singleton, when it is another.
	Node string `json:"node,omitempty"`

	Transport Transport `json:"transport"`
	Protocol  string    `json:"protocol,omitempty"` // the version agreed on
	Era       string    `json:"era,omitempty"`      // "handshake" or "stateless"
	Server    string    `json:"serverName,omitempty"`
	Title     string    `json:"serverTitle,omitempty"`
	Version   string    `json:"serverVersion,omitempty"`

	// Of a child process.
	PID       int             `json:"pid,omitempty"`
	Isolation child.Isolation `json:"isolation,omitempty"`
	SeesData  string          `json:"seesData,omitempty"`   // why it sees the data folder; empty when it does not
	Stderr    []string        `json:"stderr,omitempty"`     // its last lines; from Diagnose alone
	Stray     int64           `json:"strayLines,omitempty"` // on stdout that were no messages
	LastStray string          `json:"lastStray,omitempty"`  // from Diagnose alone
	Oversized int64           `json:"oversized,omitempty"`  // messages over the size limit

	Tools     int      `json:"tools"`
	Problems  []string `json:"problems,omitempty"`  // what is wrong with what it offers
	LatencyMs float64  `json:"latencyMs,omitempty"` // of the last simple request
	InFlight  int      `json:"inFlight,omitempty"`
	Sessions  int      `json:"sessions,omitempty"` // of single callers

	// Login is "caller" where each caller has a login of its own. SignedIn
	// is whether the caller that the status is for has one.
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
