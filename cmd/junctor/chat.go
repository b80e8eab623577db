package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"junctor/internal/attach"
	"junctor/internal/chatclient"
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

// chatGateway returns a client of the gateway that is running with this
// configuration, or of one that this command starts and shares until it exits.
func (c *cli) chatGateway(ctx context.Context) (*http.Client, func(), error) {
	cfg, path, err := c.locate(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case path != "":
		return attach.Client(path), func() {}, nil
	}
	return c.Share(ctx, cfg, c.options(useWorkDir))
}
