package chat

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/store"
	"junctor/internal/tool"
)

const (
	// maxSearch bounds the text of a search, in bytes.
	maxSearch = 200
	// maxCandidates bounds how many sessions a search reads.
	maxCandidates = 200
	// snippetAround is how much of a text is shown around a match, in bytes.
	snippetAround = 60
)

// Search returns the caller's sessions whose title or messages contain text,
// most recently changed first, each with the text around the match.
func (h *Host) Search(ctx context.Context, caller tool.Caller, text string, limit int) ([]wire.SessionInfo, error) {
	if len(text) > maxSearch {
		return nil, invalid("the text to search for is too long")
	}
	if limit <= 0 || limit > 50 {
		limit = 50
	}
	out := []wire.SessionInfo{}
	var before time.Time
	for seen := 0; seen < maxCandidates && len(out) < limit; {
		list, err := h.sessionsOf(ctx, &caller, store.SessionQuery{Before: before, Text: text, Limit: 50})
		if err != nil {
			return nil, err
		}
		for _, rec := range list {
			messages, err := h.Store.Messages(ctx, rec.ID, 0, 0)
			if err != nil {
				return nil, unavailable(err)
			}
			info := h.info(rec)
			info.Match = matchIn(messages, text)
			// The store also matches text that is not shown, such as field
			// names.
			if info.Match != "" || snippet(rec.Title, text) != "" {
				out = append(out, info)
			}
		}
		if seen += len(list); len(list) < 50 {
			break
		}
		before = list[len(list)-1].Updated
	}
	return out[:min(limit, len(out))], nil
}

// matchIn returns the text around the first match in the messages.
func matchIn(messages []store.Message, text string) string {
	for _, m := range messages {
		e := decode(m)
		for _, p := range e.Parts {
			if found := snippet(p.Text, text); found != "" && m.Role != string(llm.Tool) {
				return found
			}
		}
	}
	return ""
}

// snippet returns the text around the first match, or "".
func snippet(in, text string) string {
	at := strings.Index(strings.ToLower(in), strings.ToLower(text))
	if at < 0 || in == "" {
		return ""
	}
	at = min(at, len(in)) // lowercasing may change the length
	from, to := max(0, at-snippetAround), min(len(in), at+len(text)+snippetAround)
	for from > 0 && !utf8.RuneStart(in[from]) {
		from--
	}
	for to < len(in) && !utf8.RuneStart(in[to]) {
		to++
	}
	out := strings.Join(strings.Fields(in[from:to]), " ")
	if from > 0 {
		out = "…" + out
	}
	if to < len(in) {
		out += "…"
	}
	return out
}
