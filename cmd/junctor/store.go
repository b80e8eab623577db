package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/app"
	"junctor/internal/store"
	"junctor/internal/telemetry"
)

func (c *cli) storeCommand() *cobra.Command {
	return parent("store", "Back up, restore and copy the store of calls, chats, keys and tokens", c.storeBackup(), c.storeRestore(), c.storeCopy())
}

func (c *cli) storeCopy() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "copy --to postgres://…", Short: "Copy everything into another store, for example from SQLite to PostgreSQL", Args: noArgs,
		Long: `Copies the call log, chats, API keys, encrypted tokens, catalogues and
fingerprints of the configured store into a new PostgreSQL database (or SQLite
file). Stop Junctor first: what is written meanwhile is not copied. An
interrupted copy can be repeated.

Encrypted tokens are copied as they are. Only the same key decrypts them: set
JUNCTOR_SECRET_KEY on the nodes to the key of this machine.`,
		Example: "  junctor store copy --to postgres://junctor:secret@db.example/junctor",
		RunE: func(cmd *cobra.Command, _ []string) error {
			target, err := targetStore(to)
			if err != nil {
				return usageError{err}
			}
			cfg, err := c.load(c.options(useWorkDir))
			if err != nil {
				return err
			}
			if target.URL != "" && target.URL == cfg.Store.URL {
				return usageError{errors.New("--to is the store that is already in use")}
			}
			if c.InUse(cmd.Context(), cfg) {
				return errors.New("junctor is running on this store; stop it first so that no data is missed")
			}
			return c.withStoreOf(cmd.Context(), cfg, func(from store.Store) error {
				dest, err := app.OpenStore(cmd.Context(), target, c.DataDir, slog.New(slog.DiscardHandler))
				if err != nil {
					return fmt.Errorf("open the target: %w", err)
				}
				defer dest.Close()
				if err := c.copyStore(cmd.Context(), "Copied", from, dest); err != nil {
					return err
				}
				return c.afterCopy(cmd.Context(), from, target)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the `address` of the new store: postgres://user:password@host/database, or a file")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

// targetStore parses the target of a copy: a URL or the path of a file.
func targetStore(to string) (store.Config, error) {
	cfg := store.DefaultConfig()
	if u, err := url.Parse(to); err == nil && u.Scheme != "" && filepath.VolumeName(to) == "" {
		cfg.URL = telemetry.Secret(to)
	} else {
		cfg.Path = to
	}
	if err := cfg.Validate(); err != nil {
		return cfg, fmt.Errorf("--to: %w", err)
	}
	return cfg, nil
}

// copyStore copies a store, with progress on a terminal, and prints a summary.
func (c *cli) copyStore(ctx context.Context, done string, from, to store.Store) error {
	last, err := from.LastSeq(ctx)
	if err != nil {
		return err
	}
	_, isTerminal := c.Width(c.Err)
	n := map[string]int{}
	var shown time.Time
	err = store.Copy(ctx, from, to, func(p store.CopyProgress) {
		n[p.What] = p.Done
		if !isTerminal || c.Quiet || time.Since(shown) < 100*time.Millisecond {
			return
		}
		shown = time.Now()
		of := ""
		if p.What == "calls" && last > 0 {
			of = fmt.Sprintf(" of about %d", last)
		}
		fmt.Fprintf(c.Err, "\r\x1b[K%d%s %s copied", p.Done, of, p.What)
	})
	if isTerminal && !c.Quiet {
		fmt.Fprint(c.Err, "\r\x1b[K")
	}
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	_, err = fmt.Fprintf(c.Out, "%s %d calls, %d chats, %d keys, %d catalogues, %d fingerprints and %d other values.\n",
		done, n["calls"], n["sessions"], n["keys"], n["catalogues"], n["fingerprints"], n["values"])
	return err
}

// afterCopy prints what is left to do before the new store can be used.
func (c *cli) afterCopy(ctx context.Context, from store.Store, target store.Config) error {
	secrets, err := from.Values(ctx, store.SpaceSecrets)
	if err != nil {
		return err
	}
	setting := "store.path"
	if target.URL != "" {
		setting = "store.url"
	}
	c.Note("Set %s in the configuration to the new store.", setting)
	if len(secrets) > 0 && target.URL != "" {
		c.Note("Logins to servers are encrypted: set JUNCTOR_SECRET_KEY on every node to this machine's key,")
		c.Note("which is in that variable, in %s, or where that file says.", filepath.Join(c.DataDir, "secret.key"))
	}
	return nil
}
