package executor

import (
	"encoding/json"
	"fmt"
	"strings"
)

// truncateResult truncates a result that is larger than limit. Text blocks are
// cut and blocks that cannot be cut are omitted; a note at the end explains how
// to get the rest. Structured content is omitted, because a part of it would be
// wrong. A result within the limit is returned unchanged. id identifies the
// stored whole result; it is empty if there is none.
func truncateResult(raw json.RawMessage, limit int, id string) json.RawMessage {
	if limit <= 0 || len(raw) <= limit {
		return raw
	}
	var result struct {
		Content []json.RawMessage `json:"content"`
		IsError bool              `json:"isError,omitempty"`
		Meta    json.RawMessage   `json:"_meta,omitempty"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		result.Content = nil
	}
	room := limit
	var kept []json.RawMessage
	left := 0
	for _, block := range result.Content {
		if len(block) <= room {
			kept = append(kept, block)
			room -= len(block)
			continue
		}
		left++
		if short := cutText(block, room); short != nil {
			kept = append(kept, short)
			room = 0
		}
	}
	how := "Ask the tool for less at a time, with its own limits, filters or paging, or raise limits.maxResultBytes."
	if id != "" {
		how = fmt.Sprintf("To read on, call the tool read_result of the server junctor with {\"id\":%q,\"offset\":0}, or with \"select\", a jq expression over all of it; or raise limits.maxResultBytes.", id)
	}
	note, _ := json.Marshal(map[string]string{
		"type": "text",
		"text": fmt.Sprintf("[junctor: this result has %d bytes and was cut to %d (%d of %d content blocks shortened or left out). %s]",
			len(raw), limit, left, len(result.Content), how),
	})
	result.Content = append(kept, note)
	if len(result.Meta) > limit/4 {
		result.Meta = nil
	}
	b, err := json.Marshal(result)
	if err != nil { // the kept parts came from valid JSON
		return note
	}
	return b
}

// cutText shortens a text block to about room bytes. It returns nil if the block
// is not text or room is too small.
func cutText(block json.RawMessage, room int) json.RawMessage {
	var text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if room < 256 || json.Unmarshal(block, &text) != nil || text.Type != "text" {
		return nil
	}
	text.Text = strings.ToValidUTF8(text.Text[:min(len(text.Text), room)], "")
	b, err := json.Marshal(text)
	if err != nil {
		return nil
	}
	return b
}
