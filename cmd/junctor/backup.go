package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"junctor/internal/app"
	"junctor/internal/backup"
	"junctor/internal/store"
)

// keyNotice explains that a backup does not contain the key.
const keyNotice = `Tokens of servers are in the backup as they are in the store: encrypted. The key
that decrypts them is not in it. Keep it apart from the backup and as safe: it is
in JUNCTOR_SECRET_KEY, in the keyring, or in secret.key in the data folder.`

func (c *cli) storeBackup() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Write a backup of the store; Junctor may be running", Args: oneArg,
		Long: `Write everything that the store has into one file: the call log, chats, API keys,
encrypted tokens, catalogues and fingerprints. It works for SQLite and PostgreSQL
and while Junctor is running: the backup has everything that was stored before it
began. The file is readable by you alone, and it appears only when it is complete.

` + keyNotice,
		Example: "  junctor store backup junctor-$(date +%F).backup",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withStore(cmd.Context(), func(from store.Store) error {
				err := backup.Write(cmd.Context(), args[0], force, openFile, func(to store.Store) error {
					return c.copyStore(cmd.Context(), "Backed up", from, to)
				})
				if err != nil {
					return err
				}
				return c.printKeyNotice(cmd.Context(), from, "Keep the key that decrypts them apart from the backup")
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace the file if it exists")
	return cmd
}

// openFile opens the SQLite store at path.
func openFile(ctx context.Context, path string) (store.Store, error) {
	cfg := store.DefaultConfig()
	cfg.Path = path
	return app.OpenStore(ctx, cfg, "", slog.New(slog.DiscardHandler))
}

func (c *cli) storeRestore() *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE", Short: "Restore a backup into an empty store", Args: oneArg,
		Long: `Read everything from a backup that junctor store backup wrote into the configured
store, SQLite or PostgreSQL, which must be empty: a new file or a new database.
Stop Junctor first. The backup is not changed.

` + keyNotice + ` Without it
those servers ask for a sign-in again.`,
		Example: "  junctor store restore junctor-2026-11-15.backup",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.load(c.options(useWorkDir))
			if err != nil {
				return err
			}
			if c.InUse(cmd.Context(), cfg) {
				return errors.New("junctor is running on this store; stop it before you restore a backup")
			}
			return backup.Read(cmd.Context(), args[0], c.DataDir, openFile, func(from store.Store) error {
				return c.withStoreOf(cmd.Context(), cfg, func(to store.Store) error {
					if empty, err := store.Empty(cmd.Context(), to); err != nil {
						return err
					} else if !empty {
						return fmt.Errorf("the store is not empty; restore into a new one: %s", app.NewStoreAdvice(cfg.Store, c.DataDir))
					}
					if err := c.copyStore(cmd.Context(), "Restored", from, to); err != nil {
						return fmt.Errorf("the store is incomplete now; empty it before you try again: %w", err)
					}
					return c.printKeyNotice(cmd.Context(), to, "They can be decrypted only with the key of the gateway that was backed up")
				})
			})
		},
	}
}

// printKeyNotice prints keyNotice if the store has encrypted tokens.
func (c *cli) printKeyNotice(ctx context.Context, s store.Store, what string) error {
	secrets, err := s.Values(ctx, store.SpaceSecrets)
	if err == nil && len(secrets) > 0 {
		c.Note("Logins to servers are encrypted. %s: JUNCTOR_SECRET_KEY, or %s.", what, filepath.Join(c.DataDir, "secret.key"))
	}
	return err
}
