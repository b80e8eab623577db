package main

import (
	"context"

	"junctor/internal/attach"
	"junctor/internal/config"
	"junctor/internal/launch"
)

// locate reads the configuration and finds the gateway that serves with it.
// path is the gateway's socket, "" when none is running. cfg is nil when the
// file has become invalid and a gateway goes on without it.
func (c *cli) locate(ctx context.Context) (cfg *config.Config, path string, err error) {
	o := c.options(useWorkDir)
	if cfg, err = c.load(o); err == nil {
		return cfg, c.Find(ctx, cfg), nil
	}
	if path = c.FindWithInvalidConfig(ctx, o, err); path != "" {
		return nil, path, nil
	}
	return nil, "", err
}

// prepare returns the gateway that is running, or one of our own with the named
// upstreams, or with all. It starts nothing yet.
func (c *cli) prepare(ctx context.Context, only ...string) (*launch.Gateway, error) {
	cfg, path, err := c.locate(ctx)
	switch {
	case err != nil:
		return nil, err
	case path != "":
		return c.Attach(attach.Client(path)), nil
	}
	return c.Start(ctx, cfg, c.options(useWorkDir), only...)
}

// prepareWith is prepare with a configuration that was read already.
func (c *cli) prepareWith(ctx context.Context, cfg *config.Config, only ...string) (*launch.Gateway, error) {
	if running := c.Running(ctx, cfg); running != nil {
		return c.Attach(running), nil
	}
	return c.Start(ctx, cfg, c.options(useWorkDir), only...)
}

// withGateway calls f with a gateway whose servers, or those that are named,
// run.
func (c *cli) withGateway(ctx context.Context, f func(*launch.Gateway) error, only ...string) error {
	g, err := c.prepare(ctx, only...)
	if err != nil {
		return err
	}
	defer g.Close()
	g.Run()
	return f(g)
}
