package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// spaceTasks is the space of the values of [TaskOwners].
const spaceTasks = "task-owners"

// taskTimeout is the timeout of each read and write.
const taskTimeout = 10 * time.Second

// taskOwnerTTL is how long the owner of a task is stored. Servers drop tasks
// sooner.
const taskOwnerTTL = 7 * 24 * time.Hour

// TaskOwners stores the owners of servers' tasks. All processes on the store
// share them, and they survive a restart.
type TaskOwners struct{ Values Values }

func taskName(server, id string) string {
	sum := sha256.Sum256([]byte(server + "\n" + id))
	return hex.EncodeToString(sum[:])
}

// ClaimTask records caller as the owner of a task, unless it has one.
func (t TaskOwners) ClaimTask(ctx context.Context, server, id, caller string) error {
	ctx, cancel := context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	_, err := t.Values.PutValue(ctx, Value{
		Space: spaceTasks, Name: taskName(server, id), Data: []byte(caller), Expires: time.Now().Add(taskOwnerTTL),
	}, 0)
	if err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("store the owner of a task of %s: %w", server, err)
	}
	return nil
}

// TaskOwner returns the owner of a task, or "" if none is recorded.
func (t TaskOwners) TaskOwner(ctx context.Context, server, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	v, err := t.Values.Value(ctx, spaceTasks, taskName(server, id))
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return string(v.Data), err
}
