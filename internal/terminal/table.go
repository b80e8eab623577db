package terminal

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Table is a table for people. Columns are as wide as their content, and
// wrapped to fit into the terminal. In a pipe each row is one line.
type Table struct {
	head []string
	rows [][]Cell
	Name int  // the column with names, which the user may have to type, so it is shrunk last
	Cuts bool // on a terminal each row is one line, too, and clipped to fit
}

// Cell is one field of a row.
type Cell struct {
	Text   string
	Colour Colour
}

// NewTable returns a table with the given headings.
func NewTable(head ...string) *Table { return &Table{head: head} }

// Row adds a row. Values that are not a Cell are formatted as text.
func (t *Table) Row(values ...any) {
	cells := make([]Cell, len(values))
	for i, v := range values {
		if c, ok := v.(Cell); ok {
			cells[i] = c
		} else {
			cells[i] = Cell{Text: fmt.Sprint(v)}
		}
		cells[i].Text = OneLine(cells[i].Text)
	}
	t.rows = append(t.rows, cells)
}

// PrintList writes a list to Out: as JSON for programs, else as a table. None
// is the note for people if the table has no rows.
func (c *Terminal) PrintList(asJSON bool, list any, t *Table, none string) error {
	switch {
	case asJSON:
		return c.PrintJSON(list)
	case len(t.rows) == 0:
		c.Note("%s", none)
	default:
		c.PrintTable(t)
	}
	return nil
}

// PrintTable writes a table to Out.
func (c *Terminal) PrintTable(t *Table) {
	width, isTerminal := c.Width(c.Out)
	widths := make([]int, len(t.head))
	for i, h := range t.head {
		widths[i] = utf8.RuneCountInString(h)
	}
	for _, r := range t.rows {
		for i, cell := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Text))
		}
	}
	if isTerminal {
		shrink(widths, width, t.Name)
	}
	line := func(cells []Cell) {
		lines := make([][]string, len(cells))
		height := 1
		for i, cell := range cells {
			switch {
			case !isTerminal:
				lines[i] = []string{cell.Text}
			case t.Cuts:
				lines[i] = []string{Clip(cell.Text, widths[i])}
			default:
				lines[i] = wrap(cell.Text, widths[i])
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
					b.WriteString(strings.Repeat(" ", gap) + c.Paint(c.Out, cell.Colour, text))
					gap = 0
				}
				gap += max(widths[i]-utf8.RuneCountInString(text), 0) + 2
			}
			fmt.Fprintln(c.Out, b.String())
		}
	}
	heads := make([]Cell, len(t.head))
	for i, h := range t.head {
		heads[i] = Cell{h, Bold}
	}
	line(heads)
	for _, r := range t.rows {
		line(r)
	}
}

// shrink narrows the widest columns until the row fits, and the column name
// only if the others cannot be narrowed further.
func shrink(widths []int, room, name int) {
	const minWidth = 8
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > room; total-- {
		widest := -1
		for i, w := range widths {
			if i != name && w > minWidth && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			widest = name
		}
		if widths[widest] <= minWidth {
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

// Clip truncates a text to at most width characters.
func Clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	runes := []rune(s)
	return string(runes[:max(width-1, 0)]) + "…"
}
