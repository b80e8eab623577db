package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// The fence of a tool call in a model's text:
//
//	```tool
//	{"tool": "server:name", "arguments": {…}}
//	```
const (
	fence    = "```"
	fenceTag = "```tool"
)

// maxGap bounds the spaces after the tag on its line.
const maxGap = 64

// piece is a part of a model's output: either text for the user or the content
// of a tool block.
type piece struct {
	text   string
	block  string
	tool   bool // block is set, possibly to ""
	closed bool // the block was terminated
}

// fenceScanner splits streamed text into text and tool blocks. The result does
// not depend on how the text is divided into chunks. No part of a block, or of
// a possible block, is ever returned as text.
//
// A block begins with three backticks (not four) and the word tool, followed by
// the end of the line or an opening brace. It ends with three backticks that
// are outside of a JSON string or on a line of their own. A JSON string cannot
// span lines, so fences in the arguments of a call, for example in a Markdown
// file, do not end the block.
type fenceScanner struct {
	pending strings.Builder // text not yet known to be text
	last    byte            // the byte before pending
	block   strings.Builder
	inside  bool

	inString, escaped bool
	line              int // offset of the current line in block
}

// write processes the next chunk.
func (f *fenceScanner) write(chunk string) []piece {
	var out []piece
	for len(chunk) > 0 {
		if f.inside {
			n, ended := f.scanBlock(chunk)
			chunk = chunk[n:]
			if ended {
				out = append(out, f.closeBlock(true))
			}
			continue
		}
		f.pending.WriteString(chunk)
		chunk = ""
		text, rest, opened := f.scanText(f.pending.String())
		f.pending.Reset()
		if text != "" {
			out = append(out, piece{text: text})
			f.last = text[len(text)-1]
		}
		if opened {
			f.inside, chunk = true, rest
		} else {
			f.pending.WriteString(rest)
		}
	}
	return out
}

// end processes the end of the text.
func (f *fenceScanner) end() []piece {
	if f.inside {
		return []piece{f.closeBlock(false)}
	}
	rest := f.pending.String()
	f.pending.Reset()
	if rest == "" {
		return nil
	}
	if strings.HasPrefix(rest, fenceTag) { // an opened block without content
		return []piece{{tool: true}}
	}
	return []piece{{text: rest}}
}

// scanText finds the beginning of a block in s. It returns the text before and
// after it. If there is none, it returns the part that is certainly text, and
// the rest that may still become the beginning of a block.
func (f *fenceScanner) scanText(s string) (text, rest string, opened bool) {
	for at := 0; ; {
		i := strings.IndexByte(s[at:], '`')
		if i < 0 {
			return s, "", false
		}
		at += i
		before := f.last
		if at > 0 {
			before = s[at-1]
		}
		tail := s[at:]
		if before == '`' || !strings.HasPrefix(tail, fenceTag) {
			if before != '`' && strings.HasPrefix(fenceTag, tail) {
				return s[:at], tail, false // may become a tag
			}
			at++
			continue
		}
		after := strings.TrimLeft(tail[len(fenceTag):], " \t\r")
		switch {
		case len(tail)-len(after) > maxGap:
			// Not a block. Waiting for the end of the spaces would scan all of
			// them again with each chunk.
		case after == "":
			return s[:at], tail, false // undecided until more text arrives
		case after[0] == '\n' || after[0] == '{':
			return s[:at], after, true
		}
		at++
	}
}

// scanBlock consumes the content of a block up to its closing fence. It returns
// the number of bytes consumed and whether the block has ended.
func (f *fenceScanner) scanBlock(s string) (n int, ended bool) {
	for i := range len(s) {
		c := s[i]
		f.block.WriteByte(c)
		switch {
		case f.escaped:
			f.escaped = false
		case f.inString && c == '\\':
			f.escaped = true
		case c == '"':
			f.inString = !f.inString
		}
		if c == '\n' {
			// A JSON string cannot span lines, so an open one lacks its closing
			// quote.
			f.inString, f.escaped = false, false
			f.line = f.block.Len()
		}
		if c == '`' {
			soFar := f.block.String()
			if strings.HasSuffix(soFar, fence) && (!f.inString || strings.TrimLeft(soFar[f.line:], " \t") == fence) {
				return i + 1, true
			}
		}
	}
	return len(s), false
}

func (f *fenceScanner) closeBlock(closed bool) piece {
	content := f.block.String()
	if closed {
		content = content[:len(content)-len(fence)]
	}
	f.block.Reset()
	f.inside, f.inString, f.escaped, f.line = false, false, false, 0
	f.last = 0
	if closed {
		f.last = '`'
	}
	return piece{block: content, tool: true, closed: closed}
}

// writtenCall is a call as a model writes it into a block.
type writtenCall struct {
	Tool      string          `json:"tool"`
	Name      string          `json:"name"` // what many models write instead
	Arguments json.RawMessage `json:"arguments"`
}

// parseBlock reads the calls of a block: one object, several in a row, or an
// array of them.
func parseBlock(content string) ([]writtenCall, error) {
	dec := json.NewDecoder(strings.NewReader(content))
	var calls []writtenCall
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
			var list []writtenCall
			if err := json.Unmarshal(raw, &list); err != nil {
				return nil, err
			}
			calls = append(calls, list...)
			continue
		}
		var w writtenCall
		if err := json.Unmarshal(raw, &w); err != nil {
			return nil, err
		}
		calls = append(calls, w)
	}
	if len(calls) == 0 {
		return nil, errors.New("the block is empty")
	}
	for i := range calls {
		if calls[i].Tool == "" {
			calls[i].Tool = calls[i].Name
		}
		if calls[i].Tool == "" {
			return nil, errors.New(`the field "tool" is missing`)
		}
	}
	return calls, nil
}
