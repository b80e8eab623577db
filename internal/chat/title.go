package chat

import (
	"context"
	"net/http"
	"strings"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/tool"
)

const titlePrompt = "Write a title for this conversation: two to six words in the language of the user, no quotes, no full stop. Answer with the title alone."

// maxTitleInput bounds each part of a message that is sent to the model for a
// title, in bytes.
const maxTitleInput = 2000

// MakeTitle asks the model for a title of the conversation, based on its first
// messages.
func (h *Host) MakeTitle(ctx context.Context, caller tool.Caller, id string) (wire.SessionInfo, error) {
	if err := caller.PermitChat(); err != nil {
		return wire.SessionInfo{}, err
	}
	if _, err := h.ownSession(ctx, caller, id); err != nil {
		return wire.SessionInfo{}, err
	}
	s, err := h.Open(ctx, caller, id)
	if err != nil {
		return wire.SessionInfo{}, err
	}
	var b strings.Builder
	for _, m := range s.History().Messages {
		if m.Role == llm.User || m.Role == llm.Assistant {
			writePlain(&b, llm.Message{Role: m.Role, Parts: m.Parts}, maxTitleInput)
		}
		if b.Len() > 2*maxTitleInput {
			break
		}
	}
	model := h.model(s.modelID())
	if model == nil {
		return wire.SessionInfo{}, &tool.Error{Kind: wire.CodeNoModel, Msg: llm.NoModel}
	}
	reply, err := llm.Ask(ctx, h.Executor, &caller, model, llm.Request{System: titlePrompt, Messages: []llm.Message{llm.Text(llm.User, b.String())}, MaxTokens: 1000}, nil)
	if err != nil {
		return wire.SessionInfo{}, err
	}
	title := titleOf(strings.Trim(strings.TrimSpace(reply.Message.Text()), `"'“”.`))
	if title == "" {
		return wire.SessionInfo{}, &tool.Error{Kind: wire.CodeModel, Msg: "the model returned no title"}
	}
	return h.Change(ctx, caller, id, wire.SessionChange{Title: &title})
}

func (h *Host) makeTitle(r *http.Request) (any, error) {
	return h.MakeTitle(r.Context(), tool.CallerFrom(r.Context()), r.PathValue("id"))
}
