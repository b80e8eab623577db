package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes the manual pages for the packages. It makes them by itself:
// the generator that comes with cobra would link a Markdown parser into the
// program.
func (c *cli) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the manual pages into a folder", Args: exactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeManual(cmd.Root(), args[0])
		},
	}
}

// writeManual writes the page of a command and those of the commands below.
func writeManual(cmd *cobra.Command, dir string) error {
	if cmd.Hidden || cmd.Name() == "help" || cmd.IsAdditionalHelpTopicCommand() {
		return nil
	}
	cmd.InitDefaultHelpFlag()
	path := filepath.Join(dir, manName(cmd)+".1")
	if err := os.WriteFile(path, []byte(manPage(cmd)), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	for _, sub := range cmd.Commands() {
		if err := writeManual(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is one page in roff.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	name := manName(cmd)
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"junctor %s\" \"Junctor\"\n", strings.ToUpper(name), roff(buildVersion()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	if cmd.Long != "" {
		b.WriteString(".SH DESCRIPTION\n")
		for i, p := range strings.Split(strings.TrimSpace(cmd.Long), "\n\n") {
			if i > 0 {
				b.WriteString(".PP\n")
			}
			b.WriteString(roff(p) + "\n")
		}
	}
	var subs []*cobra.Command
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			subs = append(subs, sub)
		}
	}
	if len(subs) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range subs {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
		}
	}
	manFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manFlags(&b, "GLOBAL OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	if !cmd.HasParent() {
		b.WriteString(".SH EXIT STATUS\n0 on success, 1 on failure, 2 on wrong usage.\n")
		b.WriteString(".SH FILES\n.TP\n.I junctor/junctor.json\nThe configuration, in the user's configuration folder; or the file that \\-\\-config or JUNCTOR_CONFIG names.\n")
		b.WriteString(".TP\n.I junctor/junctor.db\nThe store, in the user's data folder.\n")
	}
	var see []string
	if cmd.HasParent() {
		see = append(see, ".BR "+roff(manName(cmd.Parent()))+" (1)")
	}
	for _, sub := range subs {
		see = append(see, ".BR "+roff(manName(sub))+" (1)")
	}
	if len(see) > 0 {
		b.WriteString(".SH SEE ALSO\n" + strings.Join(see, ",\n") + "\n")
	}
	return b.String()
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		head := "--" + f.Name
		if f.Shorthand != "" {
			head = "-" + f.Shorthand + ", " + head
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fP", roff(head))
		if kind != "" {
			fmt.Fprintf(b, " \\fI%s\\fP", roff(kind))
		}
		fmt.Fprintf(b, "\n%s\n", roff(usage))
	})
}

// roff writes text so that it stands for itself, in ASCII: not every man reads
// more.
func roff(s string) string {
	var b strings.Builder
	start := true // of a line
	for _, r := range s {
		switch {
		case start && (r == '.' || r == '\''):
			b.WriteString(`\&` + string(r))
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r >= 0x80:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
		start = r == '\n'
	}
	return b.String()
}
