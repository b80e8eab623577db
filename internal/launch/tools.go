package launch

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"junctor/internal/control"
	"junctor/internal/terminal"
)

// ListTools returns the tools that a query selects. It waits only for servers
// whose tools are not known, or for all if fresh is set.
func (g *Gateway) ListTools(ctx context.Context, q url.Values, fresh bool) (control.ToolList, error) {
	var list control.ToolList
	var missing []string // servers whose tools are not known
	if fresh {
		q.Set("wait", "fresh")
	} else {
		if err := g.Get(ctx, "/api/tools", q, &list); err != nil {
			return list, err
		}
		if missing = g.skipFailed(ctx, &list); len(missing) == 0 {
			return list, nil
		}
		q.Set("wait", "")
		q["waitFor"] = missing
	}
	began := time.Now()
	g.Run(missing...)
	stop := g.ShowConnecting(ctx, missing...)
	list = control.ToolList{}
	err := g.Get(ctx, "/api/tools", q, &list)
	stop()
	if err != nil {
		return list, err
	}
	g.skipFailed(ctx, &list)
	for _, name := range list.Pending {
		g.rememberFailure(ctx, name, "it did not answer in time", time.Since(began))
	}
	for _, d := range list.Down {
		if slices.Contains(missing, d.Name) {
			g.rememberFailure(ctx, d.Name, d.Reason, time.Since(began))
		}
	}
	return list, nil
}

// Tool returns one tool by its qualified or bare name. If wait is set it waits
// for the servers that may have it.
func (g *Gateway) Tool(ctx context.Context, name string, wait bool) (d control.ToolDetails, err error) {
	q := url.Values{}
	if wait {
		q.Set("wait", "")
		defer g.ShowConnecting(ctx)()
	}
	err = g.Get(ctx, "/api/tools/-/"+url.PathEscape(name), q, &d)
	return d, err
}

// slowFailure is how long a failing server must have delayed a command to be
// skipped by later ones for some time. Servers that fail faster are always
// tried.
const slowFailure = 2 * time.Second

// rememberFailure records that a server of a gateway in this process did not
// connect, if that took at least slowFailure.
func (g *Gateway) rememberFailure(ctx context.Context, name, reason string, took time.Duration) {
	if g.own == nil || took < slowFailure || ctx.Err() != nil {
		return
	}
	if err := g.own.RememberStartFailure(ctx, name, reason); err != nil {
		g.launcher.Note("Cannot store the failure of %s: %v", name, err)
	}
}

// skipFailed moves servers that failed recently from list.Pending to list.Down,
// and returns the remaining pending ones.
func (g *Gateway) skipFailed(ctx context.Context, list *control.ToolList) []string {
	if g.own == nil {
		return list.Pending
	}
	var rest []string
	for _, name := range list.Pending {
		reason, at, known := g.own.StartFailure(ctx, name)
		if !known {
			rest = append(rest, name)
			continue
		}
		reason = fmt.Sprintf("%s (tried %s; junctor servers list tries again)", reason, terminal.Ago(at, time.Now()))
		list.Down = append(list.Down, control.Down{Name: name, Reason: reason})
	}
	list.Pending = rest
	return rest
}
