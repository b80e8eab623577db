package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"junctor/internal/store"
)

// spaceTasks is where the store has whose the tasks of servers are.
const spaceTasks = "task-owners"

// taskLife is how long the owner of a task is known. Servers drop tasks sooner.
const taskLife = 7 * 24 * time.Hour

// taskOwners stores the owners of servers' tasks, for all processes on the
// store and for the next start.
type taskOwners struct{ values store.Values }

func taskName(server, id string) string {
	sum := sha256.Sum256([]byte(server + "\n" + id))
	return hex.EncodeToString(sum[:])
}

// ClaimTask implements upstream.TaskOwners.
func (t taskOwners) ClaimTask(ctx context.Context, server, id, caller string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	_, err := t.values.PutValue(ctx, store.Value{
		Space: spaceTasks, Name: taskName(server, id), Data: []byte(caller), Expires: time.Now().Add(taskLife),
	}, 0)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("keep the owner of a task of %s: %w", server, err)
	}
	return nil
}

// TaskOwner implements upstream.TaskOwners.
func (t taskOwners) TaskOwner(ctx context.Context, server, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	v, err := t.values.Value(ctx, spaceTasks, taskName(server, id))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return string(v.Data), err
}
