package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/provider"
	"junctor/internal/tool"
)

// basePrompt is the system prompt if none is configured.
const basePrompt = "You are a helpful assistant. You can use the tools that you are given to find things out and to get things done; " +
	"use them when they help, and answer from what they return. When a tool fails, say so plainly, and try another way where there is one. " +
	"Never invent a tool's result."

// minBudget is the minimum number of tokens for the history, however small
// the context window is.
const minBudget = 512

// request builds a request that fits the model's context window: the newest
// messages unchanged, and a summary in place of the oldest. It returns its
// estimated size, and that of the history.
func (s *Session) request(ctx context.Context, t *turn, model llm.Model, o requestTools) (req llm.Request, estimate, history int) {
	info, prefs := model.Info(), s.preferences()
	req = llm.Request{
		// Only the date: a prompt that changes every minute would not be
		// cached.
		System:   firstNonEmpty(prefs.SystemPrompt, info.SystemPrompt, basePrompt) + "\n\nToday is " + time.Now().Format("Monday, 2 January 2006") + ".",
		Guidance: o.guidance, Tools: o.tools, CacheKey: s.id, Temperature: prefs.Temperature,
	}
	overhead := llm.EstimateTokens(len(req.System)+len(req.Guidance)) + o.tools.Tokens()
	budget := s.budget(info, overhead)

	s.mu.Lock()
	gauge := s.gauge
	sum := s.meta.Summary
	if !onPath(s.entries, sum.UpTo) { // it summarises another branch
		sum = summary{}
	}
	units := unitsOf(s.entries, sum.UpTo)
	s.mu.Unlock()
	total := 0
	for _, u := range units {
		total += u.tokens
	}
	threshold := s.host.config().SummarizationThreshold
	if threshold <= 0 || threshold > budget {
		threshold = budget * 3 / 4
	}
	if gauge.Correct(total) > threshold {
		sum, units = s.compact(ctx, t, model, sum, units, gauge, budget)
	}
	if sum.Text != "" {
		req.Messages = append(req.Messages, llm.Text(llm.User, "(What was said before, in short: "+sum.Text+")"))
	}
	req.Messages = append(req.Messages, fit(units, gauge, budget)...)
	for i, m := range req.Messages {
		history += m.Tokens()
		req.Messages[i] = m.WithTextFiles(info.Provider.TakesDocuments())
	}
	return req, overhead + history, gauge.Correct(history)
}

// budget returns the maximum number of tokens of the history.
func (s *Session) budget(info llm.Info, overhead int) int {
	window := info.ContextWindow
	if window <= 0 {
		window = llm.UnknownWindow
	}
	reply := info.MaxTokens
	if reply <= 0 {
		reply = 8192
	}
	reply = min(reply, window/4)
	s.mu.Lock()
	overhead = s.gauge.Correct(overhead)
	reduced := s.reduced
	s.mu.Unlock()
	b := window - reply - overhead
	if reduced.tokens > 0 && reduced.model == info.ID {
		b = min(b, reduced.tokens)
	}
	if limit := s.host.config().MaxTokenCount; limit > 0 {
		b = min(b, limit)
	}
	return max(b, minBudget)
}

// unit is a group of messages that must not be separated: a message of the
// user, or a turn of the model with the results of its calls.
type unit struct {
	entries []historyEntry
	tokens  int
	user    bool
}

// unitsOf groups the messages after a sequence number. Fallback messages of the
// gateway are omitted. The latest message of the user is always included, even
// if a summary covers it, because the model has to answer it.
func unitsOf(entries []historyEntry, after int64) []unit {
	latest := -1
	for i, e := range entries {
		if e.message.Role == llm.User {
			latest = i
		}
	}
	var units []unit
	for i, e := range entries {
		if e.seq <= after && i != latest || e.Notice == wire.NoticeFallback {
			continue
		}
		n := e.message.Tokens()
		if e.message.Role == llm.Tool && len(units) > 0 && !units[len(units)-1].user {
			u := &units[len(units)-1]
			u.entries, u.tokens = append(u.entries, e), u.tokens+n
			continue
		}
		units = append(units, unit{entries: []historyEntry{e}, tokens: n, user: e.message.Role == llm.User})
	}
	return units
}

// compact replaces the oldest units with a summary.
func (s *Session) compact(ctx context.Context, t *turn, model llm.Model, old summary, units []unit, gauge llm.Gauge, budget int) (summary, []unit) {
	keep := len(units)
	size, messages := 0, 0
	for i := len(units) - 1; i >= 0; i-- {
		next := size + gauge.Correct(units[i].tokens)
		if keep < len(units) && next > budget/2 && (messages >= s.host.config().RetainNewestMessages || next > budget*9/10) {
			break
		}
		keep, size, messages = i, next, messages+len(units[i].entries)
	}
	// Prefer to cut before a message of the user.
	for i := keep; i < len(units); i++ {
		if units[i].user && i < len(units)-1 {
			if i-keep <= 2 {
				keep = i
			}
			break
		}
	}
	if keep == 0 {
		return old, units
	}
	dropped, kept := units[:keep], units[keep:]
	pinned := latestUser(units)
	upTo := dropped[len(dropped)-1].entries[len(dropped[len(dropped)-1].entries)-1].seq
	if upTo <= old.UpTo {
		return old, units
	}
	s.emit(wire.TypeStatus, wire.StatusPayload{State: "processing", Message: "Summarising the older part of the conversation"})
	sum := summary{UpTo: upTo, Text: s.summarise(ctx, t, model, old, dropped, budget)}
	if ctx.Err() == nil {
		if err := s.save(ctx, func(m *metadata) { m.Summary = sum }); err != nil {
			s.host.Log.WarnContext(ctx, "cannot store the summary", "err", err)
		}
	}
	if pinned >= 0 && pinned < keep {
		kept = append([]unit{units[pinned]}, kept...)
	}
	return sum, kept
}

func latestUser(units []unit) int {
	for i, u := range slices.Backward(units) {
		if u.user {
			return i
		}
	}
	return -1
}

const summaryPrompt = "Summarise this part of a conversation between a person and an assistant with tools, so that the assistant can go on without it. " +
	"Keep names, numbers, paths, decisions, what was done and found with which tool, and what is still open. Write plain prose, at most 300 words, no preface."

// summarise asks the model for a summary. If that fails, it writes one without
// the model.
func (s *Session) summarise(ctx context.Context, t *turn, model llm.Model, old summary, dropped []unit, budget int) string {
	var b strings.Builder
	if old.Text != "" {
		fmt.Fprintf(&b, "Earlier summary: %s\n\n", old.Text)
	}
	limit := budget * 3 // in bytes, so that it fits the window together with the prompt
	for _, u := range dropped {
		for _, e := range u.entries {
			writePlain(&b, e.message, 2000)
		}
	}
	text := b.String()
	if len(text) > limit {
		half := limit / 2
		text = strings.ToValidUTF8(text[:half], "") + "\n[…]\n" + strings.ToValidUTF8(text[len(text)-half:], "")
	}
	reply, err := llm.Ask(ctx, s.host.Executor, &t.caller, model, llm.Request{System: summaryPrompt, Messages: []llm.Message{llm.Text(llm.User, text)}, MaxTokens: 1000}, nil)
	s.mu.Lock()
	t.usage = t.usage.Add(reply.Usage)
	s.mu.Unlock()
	if out := strings.TrimSpace(reply.Message.Text()); err == nil && out != "" {
		return tool.Shorten(out, 6000)
	}
	if err != nil && ctx.Err() == nil {
		s.host.Log.WarnContext(ctx, "older messages not summarised; the model does not get them", "err", err)
	}
	return strings.TrimSpace(old.Text + " Some earlier messages are left out here.")
}

// writePlain writes a message as plain text, each part truncated to max bytes.
func writePlain(b *strings.Builder, m llm.Message, max int) {
	for _, p := range m.Parts {
		switch {
		case p.Text != "":
			fmt.Fprintf(b, "%s: %s\n", m.Role, tool.Shorten(p.Text, max))
		case p.File != nil:
			fmt.Fprintf(b, "%s: (file %s)\n", m.Role, p.File.Name)
		case p.Call != nil:
			fmt.Fprintf(b, "assistant calls %s with %s\n", p.Call.Name, tool.Shorten(string(p.Call.Arguments), max))
		case p.Result != nil:
			text := provider.ReadResult(tool.Result{Raw: p.Result.Content, IsError: p.Result.IsError}).ErrorText()
			fmt.Fprintf(b, "%s returns: %s\n", p.Result.Name, tool.Shorten(text, max))
		}
	}
}

// fit makes the units fit the budget: first it drops the oldest, but never the
// last unit or the user's latest message; then it truncates long texts.
func fit(units []unit, gauge llm.Gauge, budget int) []llm.Message {
	size := func() int {
		n := 0
		for _, u := range units {
			n += u.tokens
		}
		return gauge.Correct(n)
	}
	for size() > budget && len(units) > 1 {
		pinned := latestUser(units)
		i := 0
		if i == pinned {
			i = 1
		}
		if i >= len(units)-1 {
			break
		}
		units = slices.Delete(slices.Clone(units), i, i+1)
	}
	var out []llm.Message
	over := size() > budget
	pieces := 0
	for _, u := range units {
		for _, e := range u.entries {
			pieces += max(1, len(e.message.Parts))
		}
	}
	for _, u := range units {
		for _, e := range u.entries {
			m := e.message
			if over {
				m = shorten(m, max(400, budget*3/max(1, pieces)))
			}
			out = append(out, m)
		}
	}
	return out
}

// shorten truncates the long texts of a message to about limit bytes each.
func shorten(m llm.Message, limit int) llm.Message {
	out := llm.Message{Role: m.Role, Native: m.Native}
	for _, p := range m.Parts {
		switch {
		case len(p.Text) > limit:
			p.Text = cutString(p.Text, limit, len(p.Text))
			out.Native = nil
		case p.Result != nil && len(p.Result.Content) > limit:
			r := *p.Result
			r.Content = cutResult(r.Content, limit)
			p.Result = &r
		}
		out.Parts = append(out.Parts, p)
	}
	return out
}
