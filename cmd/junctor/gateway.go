package main

import (
	"context"

	"junctor/internal/attach"
	"junctor/internal/config"
	"junctor/internal/launch"
)

// locate reads the configuration and finds the gateway that is running with it.
// path is the gateway's socket, or "" if none is running. cfg is nil if the
// file is no longer valid but a gateway is still running with its previous
// content.
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

// prepare returns the running gateway, or a new one of this process with the
// named upstreams (all if none is named). It does not start any of them yet.
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

// prepareWith is prepare with a configuration that was already read.
func (c *cli) prepareWith(ctx context.Context, cfg *config.Config, only ...string) (*launch.Gateway, error) {
	if running := c.Running(ctx, cfg); running != nil {
		return c.Attach(running), nil
	}
	return c.Start(ctx, cfg, c.options(useWorkDir), only...)
}

// withGateway calls f with a gateway after starting its servers, or only the
// named ones.
func (c *cli) withGateway(ctx context.Context, f func(*launch.Gateway) error, only ...string) error {
	g, err := c.prepare(ctx, only...)
	if err != nil {
		return err
	}
	defer g.Close()
	g.Run()
	return f(g)
}
