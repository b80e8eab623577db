// Package terminal prints for people and asks them: tables, colours, notes,
// progress and questions. Text of servers cannot control the terminal. It
// knows nothing of what is printed.
package terminal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
)

// Terminal is where a person types and reads. Where its writers are no
// terminals, each table row is one line and nothing is coloured.
type Terminal struct {
	In       io.Reader
	Out      io.Writer
	Err      io.Writer
	Width    func(io.Writer) (width int, ok bool) // ok: the writer is a terminal
	IsInput  bool                                 // In is a terminal: a person can be asked
	NoColour bool
	Quiet    bool // print no notes and no progress
}

// PrintJSON writes v for programs.
func (c *Terminal) PrintJSON(v any) error {
	enc := json.NewEncoder(c.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Note tells a person something that is no result.
func (c *Terminal) Note(format string, args ...any) {
	if !c.Quiet {
		fmt.Fprintf(c.Err, format+"\n", args...)
	}
}

// Colour is one of the colours, which are used on a terminal alone, and never under NO_COLOR.
type Colour string

const (
	// The colours.
	Plain  Colour = ""
	Bold   Colour = "1"
	Dim    Colour = "2"
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
	Cyan   Colour = "36"
)

// Paint returns a text in a colour, where w shows colours.
func (c *Terminal) Paint(w io.Writer, col Colour, s string) string {
	if col == Plain || s == "" {
		return s
	}
	if _, ok := c.Width(w); !ok {
		return s
	}
	if c.NoColour {
		return s
	}
	return "\x1b[" + string(col) + "m" + s + "\x1b[0m"
}

// OneLine keeps what comes from servers from moving the cursor, painting, or
// turning the direction of what follows.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
}

// Printable keeps the lines of a text and drops what would steer a terminal.
// It takes nothing else away: the text may be a piece of a longer one.
func Printable(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		cells := strings.Split(strings.TrimSuffix(l, "\r"), "\t")
		for j, cell := range cells {
			cells[j] = OneLine(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// Text returns the text of a tool as it is shown: unchanged for a program, and
// without control sequences for a terminal.
func (c *Terminal) Text(w io.Writer, s string) string {
	if _, ok := c.Width(w); ok {
		return Printable(s)
	}
	return s
}

// Count writes a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Ago says how long ago something was.
func Ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	switch {
	case d < 0:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// Confirm asks a question that is answered with yes or no.
func (c *Terminal) Confirm(question string) (bool, error) {
	fmt.Fprint(c.Err, question)
	answer, err := bufio.NewReader(c.In).ReadString('\n')
	if err != nil && answer == "" {
		return false, errors.New("no answer")
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// Progress shows on a terminal what is being done; done takes it away.
func (c *Terminal) Progress() (step func(string), done func()) {
	if _, ok := c.Width(c.Err); !ok || c.Quiet {
		return func(string) {}, func() {}
	}
	step = func(what string) { fmt.Fprintf(c.Err, "\r\x1b[K%s …", Clip(OneLine(what), 60)) }
	return step, func() { fmt.Fprint(c.Err, "\r\x1b[K") }
}

// Width returns the number of columns of a terminal; ok is false for anything
// else.
func Width(w io.Writer) (int, bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}
