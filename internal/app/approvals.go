package app

import (
	"context"
	"net/http"

	"junctor/internal/approval"
	"junctor/internal/catalog"
	"junctor/internal/guard"
)

// newApprovals creates the inbox of calls that wait for approval.
func (a *App) newApprovals(rt http.RoundTripper) *approval.Inbox {
	cfg := a.config.Load()
	return approval.New(approval.Options{
		Config: cfg.Approval, Calls: a.waiting, Standing: &approval.Standing{Store: a.store, Tools: a.catalog, Audit: a.audit.Audit},
		Store: a.store, Shared: cfg.Store.URL != "", Redact: a.opts.Redactor.JSON, Differences: a.differences,
		Audit: a.audit.Audit, Client: approval.NewClient(rt), Log: a.log,
	})
}

// differences returns what changed in a tool since its definition was approved.
func (a *App) differences(ctx context.Context, e *catalog.Entry) any {
	changes, err := a.guard.Changes(ctx, e.Name.Server)
	if err != nil {
		a.log.WarnContext(ctx, "cannot read the changes of a tool", "err", err)
		return nil
	}
	for _, c := range changes {
		if c.Name == e.Name && c.After != nil {
			return guard.Diff(c.Before, c.After)
		}
	}
	return nil
}
