package main

import (
	"net/url"

	"github.com/spf13/cobra"

	"junctor/internal/chat"
	"junctor/internal/terminal"
)

func (c *cli) approvalsCommand() *cobra.Command {
	cmd := parent("approvals", `List and revoke what was allowed with "always" in a chat`, c.approvalsList(), c.approvalsRevoke())
	cmd.Long = `List and revoke the tools that you allowed with "always" when a chat asked before
running them (toolRules with approval: ask). An approval counts for you and for the
definition that you saw; when the definition changes you are asked again.

This differs from junctor servers approve, which accepts a changed tool definition
for everybody and does not stop a chat from asking.`
	return cmd
}

func (c *cli) approvalsList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: `List the tools that you allowed with "always"`, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := c.open(cmd.Context()) // whether an approval applies depends on the current definition
			if err != nil {
				return err
			}
			defer g.close()
			var list struct {
				Approvals []chat.ApprovalInfo `json:"approvals"`
			}
			if err := g.Get(cmd.Context(), "/api/approvals", nil, &list); err != nil {
				return err
			}
			if asJSON {
				return c.PrintJSON(list.Approvals)
			}
			if len(list.Approvals) == 0 {
				c.Note("No approvals.")
				return nil
			}
			t := terminal.NewTable("TOOL", "DEFINITION", "STATE")
			for _, a := range list.Approvals {
				state := terminal.Cell{Text: "asked again: the definition changed or the tool is gone", Colour: terminal.Yellow}
				if a.Current {
					state = terminal.Cell{Text: "allowed", Colour: terminal.Green}
				}
				t.Row(a.Tool, terminal.Clip(a.Fingerprint, 12), state)
			}
			c.PrintTable(t)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "for programs")
	return cmd
}

func (c *cli) approvalsRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke TOOL", Short: "Revoke the approval of a tool; chats ask again", Args: exactArgs(1),
		Example: "  junctor approvals revoke files:delete_file",
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := c.prepare(cmd.Context())
			if err != nil {
				return err
			}
			defer g.close()
			if err := g.Delete(cmd.Context(), "/api/approvals/"+url.PathEscape(args[0])); err != nil {
				return err
			}
			c.Note("Revoked the approval of %s.", args[0])
			return nil
		},
	}
}
