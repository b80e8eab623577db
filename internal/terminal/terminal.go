// Package terminal prints tables, colours, notes and progress for people and
// asks them questions. It removes control sequences from the text of servers.
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

// Terminal is the input and output of a command. If a writer is not a terminal,
// each table row is one line and nothing is coloured.
type Terminal struct {
	In       io.Reader
	Out      io.Writer
	Err      io.Writer
	Width    func(io.Writer) (width int, ok bool) // ok: the writer is a terminal
	IsInput  bool                                 // In is a terminal: the user can be asked
	NoColour bool
	Quiet    bool // print no notes and no progress
}

// PrintJSON writes v to Out as indented JSON.
func (c *Terminal) PrintJSON(v any) error {
	enc := json.NewEncoder(c.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Note prints a message to Err that is not part of the result.
func (c *Terminal) Note(format string, args ...any) {
	if !c.Quiet {
		fmt.Fprintf(c.Err, format+"\n", args...)
	}
}

// Colour is a colour or style. Colours are used only on a terminal, and never
// with NO_COLOR.
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

// Paint returns a text in a colour if w supports colours.
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

// OneLine returns text of a server in one line, without characters that could
// move the cursor, change colours or change the direction of the following
// text.
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

// Printable removes characters that could control a terminal, but keeps line
// breaks and tabs. It removes nothing else, because the text may be part of a
// longer one.
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

// Text returns the text of a tool for output to w: without control sequences
// for a terminal, otherwise unchanged.
func (c *Terminal) Text(w io.Writer, s string) string {
	if _, ok := c.Width(w); ok {
		return Printable(s)
	}
	return s
}

// Count returns a number with a noun, such as "2 servers".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Ago returns how long ago t was, such as "5m ago".
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

// Confirm asks a yes-or-no question.
func (c *Terminal) Confirm(question string) (bool, error) {
	fmt.Fprint(c.Err, question)
	answer, err := bufio.NewReader(c.In).ReadString('\n')
	if err != nil && answer == "" {
		return false, errors.New("no answer")
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// Progress returns functions that show the current step on a terminal and clear
// it.
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
