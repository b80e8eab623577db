package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/app"
	"junctor/internal/attach"
	"junctor/internal/chatclient"
	"junctor/internal/telemetry"
)

func (c *cli) chatCommand() *cobra.Command {
	var session, model string
	cmd := &cobra.Command{
		Use: "chat [MESSAGE…]", Short: "Talk to a model that uses the tools",
		Long: `Talk to a model in the terminal; it uses all connected tools. With a message it
answers it and exits. Type /help for the commands.`,
		Example: "  junctor chat\n  junctor chat 'what changed in this folder today?'\n  junctor chat --session ID",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, stop, err := c.chatGateway(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			err = chatclient.Run(cmd.Context(), &c.Terminal, client, chatclient.Options{Session: session, Model: model, Message: strings.Join(args, " ")})
			if errors.Is(err, chatclient.ErrNoReply) {
				return silentError{err}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "continue this session")
	cmd.Flags().StringVar(&model, "model", "", "the model to use (default: the first one configured)")
	return cmd
}

// chatGateway returns the way to a gateway: the one that serves with this
// configuration, or one that this command starts and shares while it lasts.
func (c *cli) chatGateway(ctx context.Context) (*http.Client, func(), error) {
	cfg, err := c.load(c.options(hereToo))
	if err != nil {
		if path := c.findDespite(ctx, c.options(hereToo), err); path != "" {
			return attach.Client(path), func() {}, nil
		}
		return nil, nil, err
	}
	if running := c.running(ctx, cfg); running != nil {
		return running, func() {}, nil
	}
	a, err := c.build(ctx, cfg, c.options(hereToo), telemetry.LevelError, func(o *app.Options) { o.Temporary = true })
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 2)
	go func() { done <- a.Run(ctx) }()
	go func() { done <- a.Share(ctx) }()
	stop := func() {
		cancel()
		if err := errors.Join(<-done, <-done, a.Close()); err != nil {
			fmt.Fprintln(c.Err, "junctor: "+err.Error())
		}
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if client := c.running(ctx, cfg); client != nil {
			return client, stop, nil
		}
	}
	stop()
	return nil, nil, errors.New("the chat needs a socket in your runtime or data folder and could not open one")
}
