//go:build man

package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// The command man writes the manual pages for the packages. Released binaries
// are built without it, because its generator has a Markdown parser.
func init() { buildCommands = append(buildCommands, manCommand) }

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the manual pages into a folder", Args: oneArg, Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			root.Long += moreSections
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "junctor " + buildVersion(), Manual: "Junctor"}, args[0])
		},
	}
}

// moreSections are the sections of the program's own page that cobra does not
// generate.
const moreSections = `

# EXIT STATUS
0 on success, 1 on failure, 2 on wrong usage.

# FILES
**junctor/junctor.json**: the configuration, in the user's configuration folder; or the file that --config or JUNCTOR_CONFIG names.

**junctor/junctor.db**: the store, in the user's data folder.
`
