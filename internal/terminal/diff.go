package terminal

import (
	"fmt"
	"slices"
	"strings"
)

// PrintDiff prints the lines that differ between two texts, with a few lines of
// context.
func (c *Terminal) PrintDiff(old, changed []byte) {
	const around = 3
	lines := func(text []byte) []string {
		return slices.Collect(strings.Lines(string(text)))
	}
	before, after := lines(old), lines(changed)
	head := 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	show := func(col Colour, mark string, lines []string) {
		for _, l := range lines {
			fmt.Fprintln(c.Out, c.Paint(c.Out, col, mark+Printable(strings.TrimRight(l, "\r\n"))))
		}
	}
	show(Dim, "  ", before[max(head-around, 0):head])
	show(Red, "- ", before[head:len(before)-tail])
	show(Green, "+ ", after[head:len(after)-tail])
	show(Dim, "  ", before[len(before)-tail:min(len(before)-tail+around, len(before))])
}
