package app

import (
	"context"

	"junctor/internal/guard"
	"junctor/internal/tool"
)

// reviews is the guard as administrators use it: approved tools are added to
// the catalogue immediately.
type reviews struct{ app *App }

func (r reviews) Changes(ctx context.Context, server string) ([]guard.Change, error) {
	return r.app.guard.Changes(ctx, server)
}

func (r reviews) Approve(ctx context.Context, d tool.Definition, by string) error {
	if err := r.app.guard.Approve(ctx, d, by); err != nil {
		return err
	}
	r.app.catalog.Refresh()
	return nil
}
