package main

import (
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/approval"
	"junctor/internal/launch"
	"junctor/internal/terminal"
	"junctor/internal/waiting"
)

func (c *cli) approvalsCommand() *cobra.Command {
	cmd := parent("approvals", "List, allow and deny calls that wait for approval, and revoke standing approvals",
		c.approvalsList(), c.approvalsAllow(), c.approvalsDeny(), c.approvalsRevoke())
	cmd.Long = `Calls of tools with the rule approval: ask wait for a person (toolRules). A client
that can ask its user does so; the others wait in the inbox, on the page and here.

An approval with "always" counts for the caller, the tool and the definition that was
shown; when the definition changes the next call asks again.

This differs from junctor servers approve, which accepts a changed tool definition
for everybody and does not stop calls from asking.`
	return cmd
}

// approvalLists are the calls waiting for approval and the permanent approvals.
type approvalLists struct {
	Waiting   []waiting.Record `json:"waiting"`
	Approvals []approval.Info  `json:"approvals"`
}

func (c *cli) approvalsList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: `List the waiting calls, and the tools that you allowed with "always"`, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list approvalLists
			err := c.withGateway(cmd.Context(), func(g *launch.Gateway) error { // with servers, because an approval applies only to the approved definition
				return g.Get(cmd.Context(), "/api/approvals", nil, &list)
			})
			if err != nil {
				return err
			}
			if asJSON {
				return c.PrintJSON(list)
			}
			if len(list.Approvals)+len(list.Waiting) == 0 {
				c.Note("No approvals.")
				return nil
			}
			if len(list.Waiting) > 0 {
				t := terminal.NewTable("ID", "CALLER", "TOOL", "ARGUMENTS", "WAITS")
				for _, r := range list.Waiting {
					t.Row(r.ID, r.CallerName, r.Tool, terminal.Clip(string(r.Arguments), 80), time.Since(r.Created).Round(time.Second).String())
				}
				c.PrintTable(t)
			}
			if len(list.Approvals) > 0 {
				t := terminal.NewTable("TOOL", "DEFINITION", "STATE")
				for _, a := range list.Approvals {
					state := terminal.Cell{Text: "no longer applies: the definition changed or the tool no longer exists", Colour: terminal.Yellow}
					if a.Current {
						state = terminal.Cell{Text: "allowed", Colour: terminal.Green}
					}
					t.Row(a.Tool, terminal.Clip(a.Fingerprint, 12), state)
				}
				c.PrintTable(t)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *cli) approvalsAllow() *cobra.Command {
	var session, always bool
	cmd := &cobra.Command{
		Use: "allow ID", Short: "Allow a waiting call", Args: oneArg,
		Example: "  junctor approvals allow call_3KQ…\n  junctor approvals allow call_3KQ… --always",
		RunE: func(cmd *cobra.Command, args []string) error {
			scope := approval.Once
			switch {
			case session:
				scope = approval.ForSession
			case always:
				scope = approval.Always
			}
			return c.decide(cmd, args[0], map[string]any{"action": "allow", "scope": scope}, fmt.Sprintf("Allowed (%s)", scope))
		},
	}
	cmd.Flags().BoolVar(&session, "session", false, "also later calls of this tool in the caller's session")
	cmd.Flags().BoolVar(&always, "always", false, "also all later calls of this tool by this caller")
	cmd.MarkFlagsMutuallyExclusive("session", "always")
	return cmd
}

func (c *cli) approvalsDeny() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "deny ID", Short: "Deny a waiting call", Args: oneArg,
		Example: "  junctor approvals deny call_3KQ… --reason \"use the staging database\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.decide(cmd, args[0], map[string]any{"action": "deny", "reason": reason}, "Denied")
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason that is shown to the caller")
	return cmd
}

func (c *cli) decide(cmd *cobra.Command, id string, answer map[string]any, done string) error {
	g, err := c.prepare(cmd.Context())
	if err != nil {
		return err
	}
	defer g.Close()
	var r waiting.Record
	if err := g.Post(cmd.Context(), "/api/approvals/"+url.PathEscape(id), answer, &r); err != nil {
		return err
	}
	c.Note("%s: %s for %s.", done, terminal.OneLine(r.Tool), terminal.OneLine(r.CallerName))
	return nil
}

func (c *cli) approvalsRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke TOOL", Short: "Revoke the approval of a tool; its calls ask again", Args: oneArg,
		Example: "  junctor approvals revoke files:delete_file",
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := c.prepare(cmd.Context())
			if err != nil {
				return err
			}
			defer g.Close()
			if err := g.Delete(cmd.Context(), "/api/approvals/"+url.PathEscape(args[0])); err != nil {
				return err
			}
			c.Note("Revoked the approval of %s.", args[0])
			return nil
		},
	}
}
