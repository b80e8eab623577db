package chat

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// Limits of the sampling requests of servers in one reply.
const (
	maxSampling  = 1 << 20 // bytes of one request
	maxSamples   = 20
	maxShownLine = 16 << 10 // bytes of one message that is shown to the user
)

// sampling holds the parameters of sampling/createMessage that are used.
type sampling struct {
	Messages []struct {
		Role    llm.Role        `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	SystemPrompt     string `json:"systemPrompt"`
	MaxTokens        int    `json:"maxTokens"`
	ModelPreferences struct {
		Hints []struct {
			Name string `json:"name"`
		} `json:"hints"`
	} `json:"modelPreferences"`
}

// sample sends a server's request to the model if the user allows it, and
// returns the MCP result. The server sees nothing of the conversation.
func (s *Session) sample(ctx context.Context, t *turn, about wire.QuestionPayload, params json.RawMessage) (json.RawMessage, error) {
	req, prompt, model, err := s.host.readSampling(params, s.modelID())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	t.samples++
	many := t.samples > maxSamples
	known := slices.Contains(s.meta.Sampling, about.Server)
	s.mu.Unlock()
	if many {
		return nil, &mcp.Error{Code: mcp.CodeRejected, Message: "too many requests to the model during this reply"}
	}
	q := &question{QuestionPayload: about}
	q.Kind, q.Message, q.Prompt, q.Model = wire.QuestionModel, about.Server+" wants to ask the model.", prompt, model.Info().ID
	if known {
		q.QuestionID = newID("ask")
	} else if err := s.allowSampling(ctx, t, q); err != nil {
		return nil, err
	}
	return s.sampleModel(ctx, t, q, model, req)
}

// Sampling parses a server's sampling request during a call outside of
// conversations. It returns a function that sends the request to the model, to
// be called once the user has allowed it.
func (h *Host) Sampling(caller *tool.Caller, params json.RawMessage) (send func(context.Context) (json.RawMessage, error), err error) {
	if err := caller.PermitChat(); err != nil {
		return nil, err
	}
	req, _, model, err := h.readSampling(params, "")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (json.RawMessage, error) {
		reply, err := llm.Ask(ctx, h.Executor, caller, model, req, nil)
		if err != nil {
			return nil, &mcp.Error{Code: mcp.CodeInternalError, Message: tool.AsError(err).Msg}
		}
		return samplingResult(model, reply)
	}, nil
}

// readSampling parses sampling/createMessage. It returns the request to the
// model, its form for the user, and the model: one that the server prefers,
// otherwise chosen.
func (h *Host) readSampling(params json.RawMessage, chosen string) (req llm.Request, prompt []wire.PromptLine, model llm.Model, err error) {
	var in sampling
	if len(params) > maxSampling {
		return req, nil, nil, refused("the request has %d bytes; %d are allowed", len(params), maxSampling)
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return req, nil, nil, refused("the request cannot be read")
	}
	if req, prompt, err = in.request(); err != nil {
		return req, nil, nil, err
	}
	if model = h.samplingModel(in, chosen); model == nil {
		return req, nil, nil, &mcp.Error{Code: mcp.CodeInternalError, Message: llm.NoModel}
	}
	return req, prompt, model, nil
}

// allowSampling asks the user whether the server may use the model, and returns
// an error if not.
func (s *Session) allowSampling(ctx context.Context, t *turn, q *question) error {
	a, err := s.askUser(ctx, t, q)
	if err != nil {
		return err
	}
	if a.Action != wire.Accept {
		return &mcp.Error{Code: mcp.CodeRejected, Message: "the user did not allow the use of the model"}
	}
	if a.Scope == wire.ForSession {
		if err := s.save(ctx, func(m *metadata) { m.Sampling = append(m.Sampling, q.Server) }); err != nil {
			s.host.Log.WarnContext(ctx, "cannot store the permission; the person will be asked again", "server", q.Server, "err", err)
		}
	}
	return nil
}

// sampleModel sends a server's request to the model and shows the reply to the
// user.
func (s *Session) sampleModel(ctx context.Context, t *turn, q *question, model llm.Model, req llm.Request) (json.RawMessage, error) {
	s.emit(wire.TypeStatus, wire.StatusPayload{State: "processing", Tool: q.Tool, Message: q.Server + " asks the model", Data: &wire.StatusData{CallID: q.CallID}})
	reply, err := llm.Ask(ctx, s.host.Executor, &t.caller, model, req, nil)
	s.mu.Lock()
	t.usage = t.usage.Add(reply.Usage)
	s.mu.Unlock()
	if err != nil {
		return nil, &mcp.Error{Code: mcp.CodeInternalError, Message: tool.AsError(err).Msg}
	}
	s.emit(wire.TypeAnswered, wire.AnsweredPayload{QuestionID: q.QuestionID, CallID: q.CallID, Action: wire.Accept, Text: cutLine(reply.Message.Text())})
	return samplingResult(model, reply)
}

// samplingResult returns the reply of the model as the result of
// sampling/createMessage.
func samplingResult(model llm.Model, reply llm.Turn) (json.RawMessage, error) {
	stop := "endTurn"
	if reply.Stop == llm.StopLength {
		stop = "maxTokens"
	}
	return json.Marshal(map[string]any{
		"role": "assistant", "content": map[string]string{"type": "text", "text": reply.Message.Text()},
		"model": model.Info().Model, "stopReason": stop,
	})
}

// samplingModel returns the first available model that the server prefers,
// otherwise the chosen one.
func (h *Host) samplingModel(in sampling, chosen string) llm.Model {
	if h.Models != nil {
		if set := h.Models(); set != nil {
			for _, hint := range in.ModelPreferences.Hints {
				for _, m := range set.All() {
					if hint.Name != "" && strings.Contains(m.Info().Model, hint.Name) {
						return m
					}
				}
			}
		}
	}
	return h.model(chosen)
}

// request converts the messages into a model request and into lines that are
// shown to the user.
func (in sampling) request() (llm.Request, []wire.PromptLine, error) {
	req := llm.Request{System: in.SystemPrompt, MaxTokens: max(in.MaxTokens, 0)}
	var prompt []wire.PromptLine
	if in.SystemPrompt != "" {
		prompt = append(prompt, wire.PromptLine{Role: "system", Text: cutLine(in.SystemPrompt)})
	}
	if len(in.Messages) == 0 {
		return req, nil, refused("messages is empty")
	}
	for _, m := range in.Messages {
		if m.Role != llm.User && m.Role != llm.Assistant {
			return req, nil, refused("the role of a message must be user or assistant")
		}
		blocks := []json.RawMessage{m.Content}
		if len(m.Content) > 0 && m.Content[0] == '[' {
			if err := json.Unmarshal(m.Content, &blocks); err != nil {
				return req, nil, refused("a message cannot be read")
			}
		}
		out, shown := llm.Message{Role: m.Role}, ""
		for _, b := range blocks {
			part, text, err := samplingPart(b)
			if err != nil {
				return req, nil, err
			}
			out.Parts = append(out.Parts, part)
			shown += text
		}
		req.Messages = append(req.Messages, out)
		prompt = append(prompt, wire.PromptLine{Role: string(m.Role), Text: cutLine(shown)})
	}
	return req, prompt, nil
}

// samplingPart parses one part of a message; text is its form for the user.
func samplingPart(raw json.RawMessage) (part llm.Part, text string, err error) {
	var b struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Data     string `json:"data"`
		MIMEType string `json:"mimeType"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return part, "", refused("a message cannot be read")
	}
	switch b.Type {
	case "text":
		return llm.Part{Text: b.Text}, b.Text, nil
	case "image":
		data, err := base64.StdEncoding.DecodeString(b.Data)
		if err != nil {
			return part, "", refused("the data of an image is not base64")
		}
		return llm.Part{Image: &llm.Image{MIME: b.MIMEType, Data: data}}, "[a picture]", nil
	}
	return part, "", refused("the model accepts text and images, not %q", tool.Shorten(b.Type, 40))
}

// cutLine truncates one message that is shown to the user.
func cutLine(s string) string {
	if len(s) <= maxShownLine {
		return s
	}
	return strings.ToValidUTF8(s[:maxShownLine], "") + fmt.Sprintf(" … (%d more bytes)", len(s)-maxShownLine)
}
