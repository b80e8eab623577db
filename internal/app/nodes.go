package app

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"junctor/internal/clients"
	"junctor/internal/configshare"
	"junctor/internal/executor"
	"junctor/internal/mcpserver"
	"junctor/internal/nodes"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// joinNodes makes this process a node of a cluster if the store can be shared.
func (a *App) joinNodes() error {
	if a.config.Load().Store.URL == "" {
		return nil
	}
	a.nodes = nodes.New(nodes.Options{Store: a.store, Name: a.node, Log: a.log})
	a.nodeSingletons = a.nodes.Singletons(func(ctx context.Context, server string, r tool.Request) (json.RawMessage, error) {
		return a.upstreams.DoHere(ctx, server, r)
	})
	if a.opts.SecretKey == "" {
		return nil // without a common key the nodes do not share changes
	}
	sealer, err := a.sealer()
	if err != nil {
		return err
	}
	a.edits = configshare.New(configshare.Options{Store: a.store, Vault: store.NewVault(a.store, sealer), Config: a.opts.Reload, Editing: &a.editing, KeepSecrets: clients.KeepEdits, Log: a.log})
	return nil
}

// cluster returns what the MCP servers share with those of other nodes; nil
// without a cluster.
func (a *App) cluster() mcpserver.Cluster {
	if a.nodes == nil {
		return nil
	}
	return a.nodes.Cluster()
}

// upstreamSingletons returns the singletons of the cluster; nil without one.
func (a *App) upstreamSingletons() upstream.Singletons {
	if a.nodeSingletons == nil {
		return nil
	}
	return a.nodeSingletons
}

// budgets returns the store's shared rate limits; nil if it has none.
func (a *App) budgets() executor.Budgets {
	shared, _ := a.store.(executor.Budgets)
	return shared
}

// dropCountInterval is how often dropped records are counted.
const dropCountInterval = 5 * time.Second

// countDroppedRecords counts the records dropped while the database was
// unavailable.
func (a *App) countDroppedRecords(ctx context.Context) {
	tick := time.NewTicker(dropCountInterval)
	defer tick.Stop()
	for counted := int64(0); ; {
		for ; counted < a.store.Lost(); counted++ {
			a.metrics.Dropped("record")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// remoteToolsInterval is the minimum interval between reads of the tools of
// other nodes' servers.
const remoteToolsInterval = 5 * time.Second

// runNodes runs the node in the cluster until ctx is done.
func (a *App) runNodes(ctx context.Context) error {
	if a.nodes == nil {
		return nil
	}
	var wg sync.WaitGroup
	wg.Go(func() { a.followRemoteTools(ctx) })
	wg.Go(func() { a.edits.Run(ctx, a.config.Load().Place().Path) })
	wg.Go(func() { a.countDroppedRecords(ctx) })
	defer wg.Wait()
	return a.nodes.Run(ctx)
}

// followRemoteTools publishes the tools of servers that other nodes run, from
// the catalogues that these nodes store.
func (a *App) followRemoteTools(ctx context.Context) {
	changed := a.store.Watch(ctx, store.TopicCatalogues)
	known := map[string]string{} // the last published version, by server
	var read time.Time
	for {
		var elsewhere []upstream.Status
		for _, st := range a.upstreams.Status() {
			if st.Node == "" {
				delete(known, st.Name)
			} else {
				elsewhere = append(elsewhere, st)
			}
		}
		fresh := slices.ContainsFunc(elsewhere, func(st upstream.Status) bool { return known[st.Name] == "" })
		// The watch also fires spuriously, and reading the tools of all
		// servers is expensive.
		if fresh || len(elsewhere) > 0 && time.Since(read) > remoteToolsInterval {
			read = time.Now()
			if err := a.loadRemoteTools(ctx, elsewhere, known); err != nil && ctx.Err() == nil {
				a.log.DebugContext(ctx, "cannot read the tools of other nodes", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (a *App) loadRemoteTools(ctx context.Context, elsewhere []upstream.Status, known map[string]string) error {
	kept, err := a.store.Catalogues(ctx)
	if err != nil {
		return err
	}
	for _, st := range elsewhere {
		for _, c := range kept {
			version := st.Node + c.Seen.String()
			if c.Server != st.Name || known[st.Name] == version {
				continue
			}
			set, ok := a.toolSetOf(a.config.Load(), c)
			if !ok {
				continue
			}
			if err := a.guard.Observe(ctx, c.Server, set.Tools); err != nil {
				return err
			}
			a.sink.publish(set)
			a.upstreams.SetRemote(c.Server, set.Info, len(set.Tools))
			known[st.Name] = version
		}
	}
	return nil
}
