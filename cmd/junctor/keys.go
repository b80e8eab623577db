package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/app"
	"junctor/internal/audit"
	"junctor/internal/auth"
	"junctor/internal/config"
	"junctor/internal/store"
	"junctor/internal/terminal"
	"junctor/internal/tool"
)

func (c *cli) keysCommand() *cobra.Command {
	return parent("keys", "Manage the API keys of the HTTP APIs", c.keysAdd(), c.keysList(), c.keysRevoke())
}

// withStore calls f with the open store.
func (c *cli) withStore(ctx context.Context, f func(store.Store) error) error {
	cfg, err := c.load(c.options(useWorkDir))
	if err != nil {
		return err
	}
	return c.withStoreOf(ctx, cfg, f)
}

// withStoreOf is withStore with a configuration that was already read.
func (c *cli) withStoreOf(ctx context.Context, cfg *config.Config, f func(store.Store) error) error {
	s, err := app.OpenStore(ctx, cfg.Store, c.DataDir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer s.Close()
	return f(s)
}

func (c *cli) keysAdd() *cobra.Command {
	var (
		admin   bool
		chat    bool
		noChat  bool
		tokens  int64
		servers []string
		tools   []string
		profile string
		rate    string
		expires string
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Create a key; it is shown once", Args: oneArg,
		Example: "  junctor keys add ci --server 'github*' --tool '*:read_*' --rate 60/1m --expires 30d",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !tool.ValidServer(args[0]) {
				return usageError{fmt.Errorf("invalid key name %q; use 1 to %d characters of A-Z a-z 0-9 _ -", args[0], tool.MaxServerName)}
			}
			secret, key := auth.NewKey(args[0])
			key.Admin, key.Servers, key.Tools, key.Profile = admin, servers, tools, profile
			if chat || noChat {
				key.Chat = &chat
			}
			if key.Tokens = tokens; tokens < 0 {
				return usageError{fmt.Errorf("invalid --tokens-per-day %d; use a positive number, or leave it out for no limit", tokens)}
			}
			var err error
			if key.Expires, err = auth.ParseExpiry(expires, key.Created); err != nil {
				return usageError{err}
			}
			if key.Rate, err = auth.ParseRate(rate); err != nil {
				return usageError{err}
			}
			cfg, err := c.load(c.options(useWorkDir))
			if err != nil {
				return err
			}
			if err := auth.CheckRights(key, slices.Sorted(maps.Keys(cfg.Profiles))); err != nil {
				return usageError{err}
			}
			return c.withStoreOf(cmd.Context(), cfg, func(s store.Store) error {
				if err := s.AddKey(cmd.Context(), key); errors.Is(err, store.ErrConflict) {
					return fmt.Errorf("a key named %q already exists; revoke it first (junctor keys revoke %s)", key.Name, key.Name)
				} else if err != nil {
					return err
				}
				audit.New(s, nil, slog.Default()).Audit(tool.WithCaller(cmd.Context(), tool.Local), "key.add", key.Name, key)
				if asJSON {
					return c.PrintJSON(struct {
						Name    string    `json:"name"`
						Key     string    `json:"key"`
						ID      string    `json:"id"`
						Expires time.Time `json:"expires,omitzero"`
					}{key.Name, secret.Reveal(), key.ID, key.Expires})
				}
				fmt.Fprintln(c.Out, secret.Reveal())
				c.Note("Key %q created. It is not shown again; send it as Authorization: Bearer KEY.", key.Name)
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&admin, "admin", false, "allow the key to change the configuration")
	f.StringSliceVar(&servers, "server", nil, "limit the key to servers, by `glob`")
	f.StringSliceVar(&tools, "tool", nil, "limit the key to tools, by `glob` over server:tool")
	f.StringVar(&profile, "profile", "", "bind the key to a `profile` of the configuration")
	f.StringVar(&rate, "rate", "", "limit its calls, such as `60/1m`")
	f.BoolVar(&chat, "chat", false, "allow the key to use models, in chat and for tasks (default: unless --server, --tool or --profile is given)")
	f.BoolVar(&noChat, "no-chat", false, "do not allow the key to use models")
	f.Int64Var(&tokens, "tokens-per-day", 0, "limit the tokens of models that the key may use on a day (UTC)")
	cmd.MarkFlagsMutuallyExclusive("chat", "no-chat")
	f.StringVar(&expires, "expires", "", "when the key expires: `30d`, 12h, or 2027-01-31 (default: never)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *cli) keysList() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the keys (names and limits, not the keys themselves)", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withStore(cmd.Context(), func(s store.Store) error {
				keys, err := s.Keys(cmd.Context())
				if err != nil {
					return err
				}
				shown := make([]store.Key, 0, len(keys))
				for _, k := range keys {
					if all || k.Valid(time.Now()) {
						shown = append(shown, k)
					}
				}
				t := terminal.NewTable("NAME", "KEY", "RIGHTS", "CREATED", "LAST USED", "STATE")
				now := time.Now()
				for _, k := range shown {
					t.Row(k.Name, k.Hint+"…", rights(k), k.Created.Format(time.DateOnly), terminal.Ago(k.LastUsed, now), keyState(k, now))
				}
				return c.PrintList(asJSON, shown, t, "No keys. Create one with: junctor keys add NAME")
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "include expired and revoked keys")
	return cmd
}

func rights(k store.Key) string {
	var out []string
	if k.Admin {
		out = append(out, "admin")
	}
	if k.Servers != nil {
		out = append(out, "servers "+strings.Join(k.Servers, ","))
	}
	if k.Tools != nil {
		out = append(out, "tools "+strings.Join(k.Tools, ","))
	}
	if k.Profile != "" {
		out = append(out, "profile "+k.Profile)
	}
	if limited := k.Servers != nil || k.Tools != nil || k.Profile != ""; limited == k.MayChat() { // different from the default
		out = append(out, map[bool]string{true: "chat", false: "no chat"}[k.MayChat()])
	}
	if k.Tokens > 0 {
		out = append(out, fmt.Sprintf("%d tokens per day", k.Tokens))
	}
	if k.Rate.Calls > 0 {
		out = append(out, fmt.Sprintf("%d per %s", k.Rate.Calls, k.Rate.Per))
	}
	if len(out) == 0 {
		return "all tools"
	}
	return strings.Join(out, "; ")
}

func keyState(k store.Key, now time.Time) terminal.Cell {
	switch {
	case !k.Revoked.IsZero():
		return terminal.Cell{Text: "revoked", Colour: terminal.Red}
	case !k.Valid(now):
		return terminal.Cell{Text: "expired", Colour: terminal.Yellow}
	case !k.Expires.IsZero():
		return terminal.Cell{Text: "until " + k.Expires.Format(time.DateOnly), Colour: terminal.Green}
	}
	return terminal.Cell{Text: "valid", Colour: terminal.Green}
}

func (c *cli) keysRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Revoke a key; takes effect everywhere within two seconds", Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withStore(cmd.Context(), func(s store.Store) error {
				k, err := s.RevokeKey(cmd.Context(), args[0], time.Now())
				if errors.Is(err, store.ErrNotFound) {
					return fmt.Errorf("no active key named %q (see junctor keys list)", args[0])
				} else if err != nil {
					return err
				}
				audit.New(s, nil, slog.Default()).Audit(tool.WithCaller(cmd.Context(), tool.Local), "key.revoke", k.Name, map[string]any{"id": k.ID})
				c.Note("Revoked %q.", k.Name)
				return nil
			})
		},
	}
}
