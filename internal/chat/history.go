package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
)

// History returns the conversation so far.
func (s *Session) History() wire.HistoryPayload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history(0)
}

// history returns the messages before a sequence number (0: all). s.mu is held.
func (s *Session) history(before int64) wire.HistoryPayload {
	h := wire.HistoryPayload{Title: s.title, Model: s.model, Preferences: s.meta.Preferences, Messages: []wire.HistoryMessage{}}
	siblings := alternatives(s.all)
	context := 0
	for _, e := range s.entries {
		if before > 0 && e.seq >= before {
			break
		}
		h.Messages = append(h.Messages, wire.HistoryMessage{ID: e.ID, Seq: e.seq, Role: e.message.Role, Time: e.time.UTC(),
			Parts: withoutData(e.message.Parts), Model: e.Model, Usage: e.Usage, Notice: e.Notice, Siblings: siblings[e.parent()]})
		if e.Usage != nil && e.Usage.Input > 0 {
			context = e.Usage.Input
		}
	}
	if s.meta.Usage != (llm.Usage{}) {
		h.Usage = &wire.UsagePayload{Session: s.meta.Usage, Context: context}
		if m := s.host.model(s.model); m != nil {
			h.Usage.Model, h.Usage.ContextWindow = m.Info().ID, m.Info().ContextWindow
		}
	}
	return h
}

// maxHistory bounds the total size of the results and images in a history sent
// to a client, in bytes. Text is not limited.
const maxHistory = 8 << 20

// trimHistory omits the oldest results and images of a history that is too
// large for one message. The export is complete.
func trimHistory(h wire.HistoryPayload, budget int) wire.HistoryPayload {
	for i := len(h.Messages) - 1; i >= 0; i-- {
		m := &h.Messages[i]
		own := m.Parts // shared with the session
		m.Parts = slices.Clone(own)
		for j, p := range own {
			if p.Image != nil {
				if budget -= len(p.Image.Data); budget < 0 {
					m.Parts[j] = llm.Part{File: &llm.File{Name: "image", MIME: p.Image.MIME, Size: len(p.Image.Data)}}
				}
				continue
			}
			if p.Result == nil {
				continue
			}
			if budget -= len(p.Result.Content); budget >= 0 {
				continue
			}
			short := *p.Result
			short.Content = json.RawMessage(`{"content":[` + string(textBlock(fmt.Sprintf("[%d bytes left out here; the export of the conversation has them]", len(short.Content)))) + `]}`)
			m.Parts[j].Result = &short
		}
	}
	return h
}

const titleLength = 60

func titleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	runes := []rune(line)
	if len(runes) <= titleLength {
		return line
	}
	cut := string(runes[:titleLength])
	if i := strings.LastIndexByte(cut, ' '); i > titleLength/2 {
		cut = cut[:i]
	}
	return cut + "…"
}
