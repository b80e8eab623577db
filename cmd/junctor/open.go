package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"junctor/internal/apiclient"
	"junctor/internal/app"
	"junctor/internal/attach"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// openCommand opens the page with administrator's rights.
func (c *cli) openCommand() *cobra.Command {
	var printOnly bool
	cmd := &cobra.Command{
		Use: "open", Short: "Open the web page with administrator's rights", Args: noArgs,
		Long: `Open the page of the gateway that serves with this configuration. If it listens
on loopback, the address has a token in it, with which the page gets the
administrator's rights; whoever has it may change the configuration, so treat it
as a password. On any other address sign in with a key. Without a browser the
address is printed.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, path, err := c.locate(cmd.Context())
			if err != nil {
				return err
			}
			if path == "" {
				return errors.New("no gateway is running with this configuration; start one with junctor serve")
			}
			g := c.Attach(attach.Client(path))
			var page struct{ URL string }
			err = g.Get(cmd.Context(), app.PagePath, nil, &page)
			if failure, ok := errors.AsType[*apiclient.Error](err); ok && failure.Body.Code == tool.MethodNotFound {
				return errors.New("the gateway that is running serves an agent and has no page; start one with junctor serve")
			}
			if err != nil {
				return err
			}
			if !printOnly && c.openPage(cmd.Context(), page.URL) {
				c.Note("Your browser opens the page. If it does not: junctor open --print")
				return nil
			}
			_, err = fmt.Fprintln(c.Out, page.URL)
			return err
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "only print the address")
	return cmd
}

// openPage opens the page through a file that only this user can read, because
// the arguments of a program, which would contain the token, are visible to all
// users.
func (c *cli) openPage(ctx context.Context, address string) bool {
	path := filepath.Join(c.DataDir, "open.html")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	text := fmt.Sprintf("<!doctype html>\n<meta charset=\"utf-8\">\n<title>Junctor</title>\n<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n", html.EscapeString(address))
	if err := store.CreateFile(path, text); err != nil {
		return false
	}
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(file.Path, "/") { // a drive
		file.Path = "/" + file.Path
	}
	return c.openBrowser(ctx, file.String())
}
