package jsonedit

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"
)

// list is an object or an array as a sequence of items in the text.
type list struct {
	start, end int // start is at the opening bracket, end after the closing one
	items      []item
	trailing   bool // a comma follows the last item
}

type item struct {
	start int // of the name or the element
	end   int // after the value
	comma int // offset of the comma after it, or -1
}

func newList(v *hujson.Value) list {
	l := list{start: v.StartOffset, end: v.EndOffset}
	add := func(start int, val hujson.Value, last bool) {
		it := item{start: start, end: val.EndOffset, comma: val.EndOffset + len(val.AfterExtra)}
		if last {
			// AfterExtra of the last value is not nil, but possibly empty, if a
			// comma follows.
			if l.trailing = val.AfterExtra != nil; !l.trailing {
				it.comma = -1
			}
		}
		l.items = append(l.items, it)
	}
	switch t := v.Value.(type) {
	case *hujson.Object:
		for i, m := range t.Members {
			add(m.Name.StartOffset, m.Value, i == len(t.Members)-1)
		}
	case *hujson.Array:
		for i, e := range t.Elements {
			add(e.StartOffset, e, i == len(t.Elements)-1)
		}
	}
	return l
}

// insert adds an item at the end; key is nil in an array.
func (d *document) insert(l list, key []byte, value hujson.Value) {
	unit := d.unit()
	inline := len(l.items) > 0 && !bytes.Contains(d.text[l.start:l.items[0].start], []byte("\n"))
	indent := d.indent(l.start) + unit
	if len(l.items) > 0 && !inline {
		indent = d.indent(l.items[0].start)
	}
	text := render(value, indent, unit, inline)
	if key != nil {
		text = string(key) + ": " + text
	}
	switch {
	case len(l.items) == 0:
		// Keep the text between the brackets: it may be a comment.
		inner := strings.TrimRight(string(d.text[l.start+1:l.end-1]), " \t\r\n")
		if d.crlf {
			inner = strings.ReplaceAll(inner, "\r\n", "\n")
		}
		d.splice(l.start+1, l.end-1, inner+"\n"+indent+text+"\n"+d.indent(l.start))
	case inline:
		last := l.items[len(l.items)-1]
		if l.trailing {
			d.splice(last.comma+1, last.comma+1, " "+text+",")
		} else {
			d.splice(last.end, last.end, ", "+text)
		}
	case l.trailing:
		last := l.items[len(l.items)-1]
		p := d.pastComment(last.comma + 1)
		d.splice(p, p, "\n"+indent+text+",")
	default:
		last := l.items[len(l.items)-1]
		p := d.pastComment(last.end)
		d.splice(p, p, "\n"+indent+text)
		d.splice(last.end, last.end, ",")
	}
}

// replace replaces a value in the text.
func (d *document) replace(v *hujson.Value, value hujson.Value) {
	inline := !bytes.Contains(d.text[v.StartOffset:v.EndOffset], []byte("\n")) &&
		d.indentEnd(v.StartOffset) != v.StartOffset && d.sharesLine(v)
	d.splice(v.StartOffset, v.EndOffset, render(value, d.indent(v.StartOffset), d.unit(), inline))
}

// sharesLine reports whether other items are on the line of the value, so that the
// line should not be broken.
func (d *document) sharesLine(v *hujson.Value) bool {
	line := d.text[bytes.LastIndexByte(d.text[:v.StartOffset], '\n')+1 : v.StartOffset]
	return bytes.ContainsAny(line, "{[,")
}

// remove removes item i of the list from the text.
func (d *document) remove(l list, i int) {
	it, last := l.items[i], i == len(l.items)-1
	begin := l.start + 1
	if i > 0 {
		begin = l.items[i-1].comma + 1
	}
	from := begin
	if i > 0 || !d.onLine(begin, it.start) {
		from = d.pastComment(begin) // a comment there belongs to the previous item or to the list
	}
	from = d.ownComments(from, it.start)
	to := it.end
	if it.comma >= 0 {
		to = it.comma + 1
	}
	if last || !d.onLine(to, l.items[i+1].start) {
		to = d.pastComment(to)
	}
	if len(l.items) == 1 && strings.TrimSpace(string(d.text[l.start+1:from])+string(d.text[to:l.end-1])) == "" {
		d.splice(l.start+1, l.end-1, "")
		return
	}
	with := ""
	if from > begin && d.lineEnds(from) && !d.lineEnds(to) {
		// The rest of the item's line must not become part of the comment
		// before it.
		to = d.pastSpace(to)
		with = "\n" + d.indent(it.start)
		if to == l.end-1 {
			with = "\n" + d.indent(l.start)
		}
	}
	d.splice(from, to, with)
	if last && i > 0 && it.comma < 0 {
		// The previous item becomes the last: remove its comma.
		d.splice(l.items[i-1].comma, l.items[i-1].comma+1, "")
	}
}

// ownComments returns the start of an item including the comments directly
// above it: the end of the last blank line before it. Comments above a blank
// line do not belong to the item.
func (d *document) ownComments(from, start int) int {
	own, blank := from, false
	for p := from; p < start; p++ {
		if end := d.commentEnd(p); end > p {
			p, blank = end-1, false
			continue
		}
		if d.text[p] != '\n' {
			continue
		}
		if blank {
			own = p
			if d.text[p-1] == '\r' {
				own--
			}
		}
		blank = true
	}
	return own
}

// onLine reports whether two offsets are on the same line.
func (d *document) onLine(from, to int) bool {
	return !bytes.Contains(d.text[from:to], []byte("\n"))
}

// lineEnds reports whether only white space follows p on its line.
func (d *document) lineEnds(p int) bool {
	return bytes.HasPrefix(bytes.TrimLeft(d.text[p:], " \t\r"), []byte("\n"))
}

func (d *document) pastSpace(p int) int {
	for p < len(d.text) && (d.text[p] == ' ' || d.text[p] == '\t') {
		p++
	}
	return p
}

// pastComment returns the end of the comment that follows p and ends on the
// same line, or p if there is none.
func (d *document) pastComment(p int) int {
	q := d.pastSpace(p)
	if end := d.commentEnd(q); end > q && d.onLine(q, end) {
		return end
	}
	return p
}

// commentEnd returns the end of the comment that begins at p, without the line
// ending of a line comment. It returns p if there is no comment.
func (d *document) commentEnd(p int) int {
	rest := d.text[p:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		return p + len(bytes.TrimSuffix(line, []byte("\r")))
	case bytes.HasPrefix(rest, []byte("/*")):
		if end := bytes.Index(rest[2:], []byte("*/")); end >= 0 {
			return p + 2 + end + 2
		}
	}
	return p
}

// indent returns the indentation of the line that contains an offset.
func (d *document) indent(offset int) string {
	start := bytes.LastIndexByte(d.text[:offset], '\n') + 1
	return string(d.text[start:d.indentEnd(offset)])
}

func (d *document) indentEnd(offset int) int {
	p := bytes.LastIndexByte(d.text[:offset], '\n') + 1
	for p < offset && (d.text[p] == ' ' || d.text[p] == '\t') {
		p++
	}
	return p
}

// unit returns one level of indentation: that of the first item of the
// document, or two spaces.
func (d *document) unit() string {
	l := newList(&d.root)
	if len(l.items) > 0 && !d.onLine(l.start, l.items[0].start) {
		if unit := strings.TrimPrefix(d.indent(l.items[0].start), d.indent(l.start)); unit != "" {
			return unit
		}
	}
	return "  "
}

// maxLine is the maximum length of an array of plain values on one line.
const maxLine = 100

// render formats a value as people write it: objects on several lines, arrays of
// plain values on one.
func render(value hujson.Value, indent, unit string, inline bool) string {
	var b strings.Builder
	write(&b, value, indent, unit, inline)
	return b.String()
}

func write(b *strings.Builder, v hujson.Value, indent, unit string, inline bool) {
	switch t := v.Value.(type) {
	case *hujson.Object:
		if len(t.Members) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteByte('{')
		for i, m := range t.Members {
			separate(b, i, indent+unit, inline, " ")
			b.Write(m.Name.Value.(hujson.Literal))
			b.WriteString(": ")
			write(b, m.Value, indent+unit, unit, inline)
		}
		closing(b, indent, inline, " ")
		b.WriteByte('}')
	case *hujson.Array:
		if !inline && !plainElements(t) {
			b.WriteByte('[')
			for i, e := range t.Elements {
				separate(b, i, indent+unit, false, "")
				write(b, e, indent+unit, unit, false)
			}
			closing(b, indent, false, "")
			b.WriteByte(']')
			return
		}
		b.WriteByte('[')
		for i, e := range t.Elements {
			separate(b, i, "", true, "")
			write(b, e, indent, unit, true)
		}
		b.WriteByte(']')
	case hujson.Literal:
		b.Write(t)
	}
}

func separate(b *strings.Builder, i int, indent string, inline bool, first string) {
	if i > 0 {
		b.WriteByte(',')
	}
	switch {
	case !inline:
		b.WriteString("\n" + indent)
	case i > 0:
		b.WriteByte(' ')
	default:
		b.WriteString(first)
	}
}

func closing(b *strings.Builder, indent string, inline bool, last string) {
	if inline {
		b.WriteString(last)
	} else {
		b.WriteString("\n" + indent)
	}
}

// plainElements reports whether an array has only plain values and fits on one
// line.
func plainElements(a *hujson.Array) bool {
	length := 2
	for _, e := range a.Elements {
		lit, ok := e.Value.(hujson.Literal)
		if !ok {
			return false
		}
		length += len(lit) + 2
	}
	return length <= maxLine
}
