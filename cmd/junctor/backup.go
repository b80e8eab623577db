package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"junctor/internal/app"
	"junctor/internal/store"
)

// keyApart says what a backup does not have.
const keyApart = `Tokens of servers are in the backup as they are in the store: sealed. The key
that opens them is not in it. Keep it apart from the backup and as safe: it is
in JUNCTOR_SECRET_KEY, in the keyring, or in secret.key in the data folder.`

func (c *cli) storeBackup() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Write a backup of the store; Junctor may be running", Args: exactArgs(1),
		Long: `Write everything that the store has into one file: the call log, chats, API keys,
sealed tokens, catalogues and fingerprints. It works for SQLite and PostgreSQL
and while Junctor is running: the backup has everything that was stored before it
began. The file is readable by you alone, and it appears only when it is complete.

` + keyApart,
		Example: "  junctor store backup junctor-$(date +%F).backup",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withStore(cmd.Context(), func(from store.Store) error {
				if err := c.writeBackup(cmd.Context(), from, args[0], force); err != nil {
					return err
				}
				return c.noteKey(cmd.Context(), from, "Keep the key that opens them apart from the backup")
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace the file if it exists")
	return cmd
}

// writeBackup copies the store into a new file in a private folder beside file,
// and puts it in place when it is complete.
func (c *cli) writeBackup(ctx context.Context, from store.Store, file string, force bool) (err error) {
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; name another", file)
	} else if err == nil && !force {
		return fmt.Errorf("%s already exists; name another file, or use --force to replace it", file)
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".junctor-backup-")
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "store.db")
	to, err := openFile(ctx, path)
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := errors.Join(c.copyStore(ctx, "Backed up", from, to), to.Close()); err != nil {
		return err
	}
	if err := syncFile(path); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if force {
		err = os.Rename(path, file)
	} else {
		err = os.Link(path, file) // which replaces nothing
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = os.Rename(path, file) // a file system without links
		}
	}
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return syncFile(filepath.Dir(file))
}

// syncFile has the content of a file or folder written to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if info, statErr := f.Stat(); statErr == nil && info.IsDir() {
		err = nil // not every system can do that for folders
	}
	return errors.Join(err, f.Close())
}

func openFile(ctx context.Context, path string) (store.Store, error) {
	cfg := store.DefaultConfig()
	cfg.Path = path
	return app.OpenStore(ctx, cfg, "", slog.New(slog.DiscardHandler))
}

func (c *cli) storeRestore() *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE", Short: "Restore a backup into an empty store", Args: exactArgs(1),
		Long: `Read everything from a backup that junctor store backup wrote into the configured
store, SQLite or PostgreSQL, which must be empty: a new file or a new database.
Stop Junctor first. The backup is not changed.

` + keyApart + ` Without it
those servers ask for a sign-in again.`,
		Example: "  junctor store restore junctor-2026-11-15.backup",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.load(c.options(hereToo))
			if err != nil {
				return err
			}
			if c.inUse(cmd.Context(), cfg) {
				return errors.New("junctor is running on this store; stop it before you restore a backup")
			}
			return c.withBackup(cmd.Context(), args[0], func(from store.Store) error {
				return c.withStoreOf(cmd.Context(), cfg, func(to store.Store) error {
					if empty, err := store.Empty(cmd.Context(), to); err != nil {
						return err
					} else if !empty {
						return errors.New("the store is not empty; restore into a new one: move the file of the store away, or set store.path or store.url to a new one")
					}
					if err := c.copyStore(cmd.Context(), "Restored", from, to); err != nil {
						return fmt.Errorf("the store is incomplete now; empty it before you try again: %w", err)
					}
					return c.noteKey(cmd.Context(), to, "They open only with the key of the gateway that was backed up")
				})
			})
		},
	}
}

// withBackup opens a private copy of a backup, so that tables of an earlier
// version can be brought up to date and the backup stays as it is.
func (c *cli) withBackup(ctx context.Context, file string, f func(store.Store) error) (err error) {
	if err := os.MkdirAll(c.dataDir, 0o700); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	dir, err := os.MkdirTemp(c.dataDir, ".restore-")
	if err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "store.db")
	if err := copyFile(file, path); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	from, err := openFile(ctx, path)
	if err != nil {
		return fmt.Errorf("%s is not a backup that junctor store backup wrote, or is damaged: %w", file, err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if empty, err := store.Empty(ctx, from); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	} else if empty {
		return fmt.Errorf("%s has no records of a store", file)
	}
	return f(from)
}

// copyFile copies a regular file into a new one, readable by this user alone.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", from)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// noteKey reminds of the key when the store has sealed tokens.
func (c *cli) noteKey(ctx context.Context, s store.Store, what string) error {
	sealed, err := s.Values(ctx, store.SpaceSecrets)
	if err == nil && len(sealed) > 0 {
		c.Note("Logins to servers are sealed. %s: JUNCTOR_SECRET_KEY, or %s.", what, filepath.Join(c.dataDir, "secret.key"))
	}
	return err
}
