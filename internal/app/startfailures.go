package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"junctor/internal/store"
)

// Processes that end with their command start servers each time. A start
// failure is remembered for startFailureTTL, so that a server that is slow to
// fail delays only one command.
const (
	startFailureSpace = "start-failures"
	startFailureTTL   = 10 * time.Minute
)

type startFailure struct {
	Config string `json:"config"` // the fingerprint of the server's settings
	Reason string `json:"reason"`
}

// RememberStartFailure records that a server failed to connect, and the
// reason.
func (a *App) RememberStartFailure(ctx context.Context, server, reason string) error {
	cfg, ok := a.upstreams.Config(server)
	if !ok {
		return nil
	}
	data, err := json.Marshal(startFailure{Config: cfg.Fingerprint(), Reason: reason})
	if err != nil {
		return err
	}
	v := store.Value{Space: startFailureSpace, Name: server, Data: data, Expires: time.Now().Add(startFailureTTL)}
	_, err = a.store.PutValue(ctx, v, store.AnyVersion)
	return err
}

// StartFailure returns the reason of a recent failure to connect to a server;
// known is false if there was none or the server's settings have changed
// since.
func (a *App) StartFailure(ctx context.Context, server string) (reason string, at time.Time, known bool) {
	v, err := a.store.Value(ctx, startFailureSpace, server)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			a.log.WarnContext(ctx, "cannot read the start failures", "server", server, "err", err)
		}
		return "", time.Time{}, false
	}
	cfg, ok := a.upstreams.Config(server)
	var f startFailure
	if !ok || json.Unmarshal(v.Data, &f) != nil || f.Config != cfg.Fingerprint() {
		return "", time.Time{}, false
	}
	return f.Reason, v.Updated, true
}
