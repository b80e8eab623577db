package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// printJSON writes v for programs.
func (c *cli) printJSON(v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// note tells a person something that is no result.
func (c *cli) note(format string, args ...any) {
	if !c.flags.quiet {
		fmt.Fprintf(c.err, format+"\n", args...)
	}
}

// colours are used on a terminal alone, and never under NO_COLOR.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	cyan   colour = "36"
)

func (c *cli) paint(w io.Writer, col colour, s string) string {
	if col == plain || s == "" {
		return s
	}
	if _, ok := c.terminal(w); !ok {
		return s
	}
	if v, set := c.lookup("NO_COLOR"); set && v != "" {
		return s
	}
	return "\x1b[" + string(col) + "m" + s + "\x1b[0m"
}

// table is rows for people: columns as wide as they need, wrapped to fit into
// the terminal. In a pipe each row is one line.
type table struct {
	head []string
	rows [][]cell
	name int  // the column that is typed again, and so shrunk last
	cuts bool // one line for each row also on a terminal: what does not fit is cut
}

type cell struct {
	text   string
	colour colour
}

func newTable(head ...string) *table { return &table{head: head} }

// row adds a row; a value is a cell, or becomes the text of one.
func (t *table) row(values ...any) {
	cells := make([]cell, len(values))
	for i, v := range values {
		if c, ok := v.(cell); ok {
			cells[i] = c
		} else {
			cells[i] = cell{text: fmt.Sprint(v)}
		}
		cells[i].text = oneLine(cells[i].text)
	}
	t.rows = append(t.rows, cells)
}

// oneLine keeps what comes from servers from moving the cursor, painting, or
// turning the direction of what follows.
func oneLine(s string) string {
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

// printable keeps the lines of a text and drops what would steer a terminal.
// It takes nothing else away: the text may be a piece of a longer one.
func printable(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		cells := strings.Split(strings.TrimSuffix(l, "\r"), "\t")
		for j, cell := range cells {
			cells[j] = oneLine(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// text is what a tool said: as it is for a program, and without what would
// steer a terminal for a person.
func (c *cli) text(w io.Writer, s string) string {
	if _, ok := c.terminal(w); ok {
		return printable(s)
	}
	return s
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func (c *cli) printTable(t *table) {
	width, isTerminal := c.terminal(c.out)
	widths := make([]int, len(t.head))
	for i, h := range t.head {
		widths[i] = utf8.RuneCountInString(h)
	}
	for _, r := range t.rows {
		for i, cell := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.text))
		}
	}
	if isTerminal {
		shrink(widths, width, t.name)
	}
	line := func(cells []cell) {
		lines := make([][]string, len(cells))
		height := 1
		for i, cell := range cells {
			switch {
			case !isTerminal:
				lines[i] = []string{cell.text}
			case t.cuts:
				lines[i] = []string{clip(cell.text, widths[i])}
			default:
				lines[i] = wrap(cell.text, widths[i])
			}
			height = max(height, len(lines[i]))
		}
		for n := range height {
			var b strings.Builder
			gap := 0
			for i, cell := range cells {
				text := ""
				if n < len(lines[i]) {
					text = lines[i][n]
				}
				if text != "" {
					b.WriteString(strings.Repeat(" ", gap) + c.paint(c.out, cell.colour, text))
					gap = 0
				}
				gap += max(widths[i]-utf8.RuneCountInString(text), 0) + 2
			}
			fmt.Fprintln(c.out, b.String())
		}
	}
	heads := make([]cell, len(t.head))
	for i, h := range t.head {
		heads[i] = cell{h, bold}
	}
	line(heads)
	for _, r := range t.rows {
		line(r)
	}
}

// shrink takes from the widest columns until the row fits, and from the named
// one only when the others have no more to give.
func shrink(widths []int, room, name int) {
	const least = 8
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > room; total-- {
		widest := -1
		for i, w := range widths {
			if i != name && w > least && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			widest = name
		}
		if widths[widest] <= least {
			return
		}
		widths[widest]--
	}
}

// wrap breaks a text into lines of at most width characters: between words, or
// inside a word that is longer than a line.
func wrap(s string, width int) []string {
	lines := []string{""}
	room := width
	for _, word := range strings.Fields(s) {
		runes := []rune(word)
		last := len(lines) - 1
		if len(runes) < room && lines[last] != "" {
			lines[last] += " " + word
			room -= len(runes) + 1
			continue
		}
		if lines[last] != "" {
			lines = append(lines, "")
		}
		for len(runes) > width {
			lines[len(lines)-1] = string(runes[:width])
			runes = runes[width:]
			lines = append(lines, "")
		}
		lines[len(lines)-1] = string(runes)
		room = width - len(runes)
	}
	return lines
}

func clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	runes := []rune(s)
	return string(runes[:max(width-1, 0)]) + "…"
}

// ago says how long ago something was.
func ago(t, now time.Time) string {
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
