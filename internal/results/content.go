package results

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Value returns the content of a CallToolResult as one JSON value: the
// structured content if there is any, else the text (parsed if it is JSON),
// else the list of content blocks.
func Value(raw json.RawMessage) json.RawMessage {
	if s := rawjson.Field(raw, "structuredContent"); len(s) > 0 && string(s) != "null" {
		return s
	}
	text, other := texts(raw)
	if other > 0 || text == nil {
		if content := rawjson.Field(raw, "content"); content != nil {
			return content
		}
		return json.RawMessage("null")
	}
	joined := strings.Join(text, "\n")
	if t := strings.TrimSpace(joined); t != "" && strings.ContainsRune(`{["-0123456789tfn`, rune(t[0])) && json.Valid([]byte(t)) {
		return json.RawMessage(t)
	}
	return quote(joined)
}

// Text returns a value as text: a string itself, any other value as JSON.
func Text(value json.RawMessage) string {
	var s string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// texts returns the text blocks of a result and the number of other blocks.
func texts(raw json.RawMessage) (text []string, other int) {
	for block := range rawjson.Elements(rawjson.Field(raw, "content")) {
		if rawjson.FieldString(block, "type") == "text" {
			text = append(text, rawjson.FieldString(block, "text"))
		} else {
			other++
		}
	}
	return text, other
}

// TextResult returns a CallToolResult with one text.
func TextResult(text string) json.RawMessage {
	return append(append([]byte(`{"content":[`), textBlock(text)...), `]}`...)
}

func textBlock(text string) []byte {
	return append(append([]byte(`{"type":"text","text":`), quote(text)...), '}')
}

// Selected returns a CallToolResult with the part of another that an expression
// selects.
func Selected(ctx context.Context, expression string, raw json.RawMessage) (json.RawMessage, error) {
	value, err := Select(ctx, expression, Value(raw))
	if err != nil {
		return nil, err
	}
	return TextResult(Text(value)), nil
}

// Fit returns a CallToolResult whose text and structured content have at most
// limit bytes each, not counting a note. What is longer is stored and replaced
// by its beginning with a note that says how to read on. Text that only repeats
// the structured content is not sent as well. Other blocks are unchanged.
func (c *Cache) Fit(caller *tool.Caller, raw json.RawMessage, limit int) json.RawMessage {
	if limit <= 0 || len(raw) <= limit {
		return raw
	}
	text, _ := texts(raw)
	size := 0
	for _, t := range text {
		size += len(t)
	}
	structured := rawjson.Field(raw, "structuredContent")
	if string(structured) == "null" {
		structured = nil
	}
	if size <= limit && len(structured) <= limit {
		return raw
	}
	whole := strings.Join(text, "\n")
	if structured != nil && equalJSON(whole, structured) {
		whole, structured = string(structured), nil
	}
	var blocks [][]byte
	if whole != "" {
		blocks = append(blocks, textBlock(c.Cut(caller, whole, limit)))
	}
	if len(structured) > limit {
		blocks = append(blocks, textBlock(c.Cut(caller, string(structured), limit)))
		structured = nil
	}
	for block := range rawjson.Elements(rawjson.Field(raw, "content")) {
		if rawjson.FieldString(block, "type") != "text" {
			blocks = append(blocks, block)
		}
	}
	out := append([]byte(`{"content":[`), bytes.Join(blocks, []byte(","))...)
	out = append(out, ']')
	for _, m := range []struct {
		key   string
		value json.RawMessage
	}{{"structuredContent", structured}, {"isError", rawjson.Field(raw, "isError")}, {"_meta", rawjson.Field(raw, "_meta")}} {
		if m.value != nil {
			out = append(append(out, `,"`+m.key+`":`...), m.value...)
		}
	}
	return append(out, '}')
}

// equalJSON reports whether a text is JSON that differs from a value in white
// space only.
func equalJSON(text string, value json.RawMessage) bool {
	var a, b bytes.Buffer
	return json.Compact(&a, []byte(text)) == nil && json.Compact(&b, value) == nil && bytes.Equal(a.Bytes(), b.Bytes())
}

// Cut returns a text that is longer than limit as its beginning and a note that
// says how to read on, for which it stores the text.
func (c *Cache) Cut(caller *tool.Caller, text string, limit int) string {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	page, next := Page(text, 0, limit)
	id := c.Keep(caller.View(), text)
	if id == "" {
		return page + fmt.Sprintf("\n[junctor: the first %d of %d bytes. The rest is too large to keep; ask the tool for less at a time, or use select]", next, len(text))
	}
	return page + fmt.Sprintf("\n[junctor: the first %d of %d bytes. To read on, call the tool read_result of the server junctor with {\"id\":%q,\"offset\":%d}, or with \"select\", a jq expression over all of it]", next, len(text), id, next)
}

func quote(s string) []byte { return rawjson.AppendQuoted(nil, s) }
