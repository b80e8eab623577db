package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// geminiWire implements Gemini's generateContent and streamGenerateContent.
type geminiWire struct{}

var geminiName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`)

// signs reports whether a model sends thought signatures and requires them
// back.
func signs(model string) bool {
	return regexp.MustCompile(`^gemini-([3-9]|\d\d)`).MatchString(model)
}

// skipSignature is the value that Google documents for calls made by another
// model.
const skipSignature = "skip_thought_signature_validator"

type geminiPart struct {
	Text         *string         `json:"text"`
	Thought      bool            `json:"thought"`
	Signature    string          `json:"thoughtSignature"`
	InlineData   json.RawMessage `json:"inlineData"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
		Parts    []geminiPart    `json:"parts"`
	} `json:"functionResponse"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

func (geminiWire) parse(s *Server, r *http.Request, body []byte) (*Request, *Failure) {
	type config struct {
		Mode    string   `json:"mode"`
		Allowed []string `json:"allowedFunctionNames"`
	}
	var in struct {
		Contents          []geminiContent `json:"contents"`
		SystemInstruction *geminiContent  `json:"systemInstruction"`
		Tools             []struct {
			FunctionDeclarations []struct {
				Name                 string          `json:"name"`
				Description          string          `json:"description"`
				Parameters           json.RawMessage `json:"parameters"`
				ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		ToolConfig struct {
			FunctionCallingConfig config `json:"functionCallingConfig"`
		} `json:"toolConfig"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &Failure{Status: 400, Message: "Invalid JSON payload received. " + err.Error()}
	}
	path := r.URL.Path
	model := path[strings.LastIndex(path, "/")+1:]
	model, method, _ := strings.Cut(model, ":")
	req := &Request{API: Gemini, Path: path, Header: r.Header.Clone(), Body: body, Model: model, Stream: method == "streamGenerateContent", Choice: "auto", Parallel: true}
	switch c := in.ToolConfig.FunctionCallingConfig; c.Mode {
	case "ANY":
		req.Choice = "required"
		if len(c.Allowed) == 1 {
			req.Choice = c.Allowed[0]
		}
	case "NONE":
		req.Choice = "none"
	}
	fail := func(format string, args ...any) (*Request, *Failure) {
		return req, &Failure{Status: 400, Message: fmt.Sprintf(format, args...)}
	}
	if in.SystemInstruction != nil {
		for _, p := range in.SystemInstruction.Parts {
			if p.Text != nil {
				req.System += *p.Text
			}
		}
	}
	for _, t := range in.Tools {
		for i, d := range t.FunctionDeclarations {
			if !geminiName.MatchString(d.Name) {
				return fail("* GenerateContentRequest.tools[0].function_declarations[%d].name: Invalid function name. Must start with a letter or an underscore.", i)
			}
			if d.Description == "" {
				return fail("* GenerateContentRequest.tools[0].function_declarations[%d].description: must be set.", i)
			}
			schema := d.ParametersJSONSchema
			if schema == nil {
				schema = d.Parameters
			}
			req.Tools = append(req.Tools, Tool{Name: d.Name, Description: d.Description, Schema: schema})
		}
	}
	if f := unique(req.Tools); f != nil {
		return req, f
	}
	if len(req.Tools) > 512 {
		return fail("At most 512 function declarations can be specified.")
	}
	if len(in.Contents) == 0 {
		return fail("* GenerateContentRequest.contents: contents is not specified")
	}
	turn := 0 // index of the first content of the current turn
	for i, c := range in.Contents {
		if c.Role == "user" && len(c.Parts) > 0 && c.Parts[0].FunctionResponse == nil {
			turn = i
		}
	}
	var open []Called
	for i, c := range in.Contents {
		if c.Role != "user" && c.Role != "model" && c.Role != "function" {
			return fail("Please use a valid role: user, model.")
		}
		if len(c.Parts) == 0 {
			return fail("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
		}
		msg := Message{Role: map[string]string{"user": "user", "model": "assistant", "function": "user"}[c.Role]}
		for j, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				if c.Role != "model" || !geminiName.MatchString(p.FunctionCall.Name) {
					return fail("* GenerateContentRequest.contents[%d].parts[%d].function_call.name: Invalid function name.", i, j)
				}
				if signs(model) && i > turn && len(msg.Calls) == 0 && p.Signature != skipSignature && !s.wasIssued(p.Signature) {
					if p.Signature == "" {
						return fail("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Function call `%s`, position %d.", p.FunctionCall.Name, j)
					}
					return fail("Thought signature is not valid.")
				}
				msg.Calls = append(msg.Calls, Called{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Args: string(p.FunctionCall.Args)})
			case p.FunctionResponse != nil:
				f := p.FunctionResponse
				if !isObject(f.Response) {
					return fail("* GenerateContentRequest.contents[%d].parts[%d].function_response.response: must be an object.", i, j)
				}
				res := Result{ID: f.ID, Name: f.Name, Text: string(f.Response)}
				var out struct {
					Output json.RawMessage `json:"output"`
					Error  json.RawMessage `json:"error"`
				}
				json.Unmarshal(f.Response, &out)
				if v := out.Error; v != nil {
					res.IsError, out.Output = true, v
				}
				if out.Output != nil && json.Unmarshal(out.Output, &res.Text) != nil {
					res.Text = string(out.Output)
				}
				for _, q := range f.Parts {
					if q.InlineData != nil {
						res.Images++
					}
				}
				msg.Results = append(msg.Results, res)
			case p.InlineData != nil:
				msg.Images++
			case p.Text != nil && !p.Thought:
				msg.Text += *p.Text
			}
		}
		if len(open) > 0 {
			if len(msg.Results) != len(open) {
				return fail("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
			}
			for k, res := range msg.Results {
				if res.Name != open[k].Name {
					return fail("Please ensure that function response turn comes immediately after a function call turn: response for %s, call of %s.", res.Name, open[k].Name)
				}
			}
		} else if len(msg.Results) > 0 {
			return fail("Please ensure that function response turn comes immediately after a function call turn.")
		}
		open = msg.Calls
		req.Messages = append(req.Messages, msg)
	}
	if len(open) > 0 {
		return fail("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	}
	return req, nil
}

func geminiStop(a answer) string {
	for _, c := range a.calls {
		if c.malformed {
			return "MALFORMED_FUNCTION_CALL"
		}
	}
	switch a.stop {
	case "length":
		return "MAX_TOKENS"
	case "filter":
		return "SAFETY"
	}
	return "STOP"
}

// geminiParts returns the reply in parts; calls are not split.
func geminiParts(s *Server, req *Request, a answer, text []string) []map[string]any {
	var parts []map[string]any
	for _, p := range pieces(a.reasoning, 40) {
		parts = append(parts, map[string]any{"text": p, "thought": true})
	}
	for i, p := range text {
		part := map[string]any{"text": p}
		if signs(req.Model) && i == len(text)-1 && len(a.calls) == 0 {
			part["thoughtSignature"] = s.issue("Gemini")
		}
		parts = append(parts, part)
	}
	if geminiStop(a) == "MALFORMED_FUNCTION_CALL" {
		return parts
	}
	for i, c := range a.calls {
		part := map[string]any{"functionCall": map[string]any{"id": c.id, "name": c.name, "args": json.RawMessage(c.args)}}
		if signs(req.Model) && i == 0 {
			part["thoughtSignature"] = s.issue("Gemini")
		}
		parts = append(parts, part)
	}
	return parts
}

func geminiChunk(req *Request, a answer, parts []map[string]any, last bool) map[string]any {
	candidate := map[string]any{"index": 0}
	if len(parts) > 0 {
		candidate["content"] = map[string]any{"role": "model", "parts": parts}
	}
	chunk := map[string]any{"candidates": []any{candidate}, "modelVersion": req.Model, "responseId": "scripted"}
	if last {
		candidate["finishReason"] = geminiStop(a)
		chunk["usageMetadata"] = map[string]any{"promptTokenCount": a.in, "candidatesTokenCount": a.out, "totalTokenCount": a.in + a.out}
	}
	return chunk
}

func (geminiWire) stream(s *Server, out *events, req *Request, a answer) {
	parts := geminiParts(s, req, a, a.text)
	for _, p := range parts {
		out.send("", geminiChunk(req, a, []map[string]any{p}, false))
	}
	out.send("", geminiChunk(req, a, nil, true))
}

func (geminiWire) whole(s *Server, w http.ResponseWriter, req *Request, a answer) {
	var text []string
	if len(a.text) > 0 {
		text = []string{a.whole()}
	}
	writeJSON(w, http.StatusOK, geminiChunk(req, a, geminiParts(s, req, a, text), true))
}

func geminiError(f Failure) map[string]any {
	status := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
		429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}[f.Status]
	if status == "" {
		status = "UNKNOWN"
	}
	e := map[string]any{"code": f.Status, "message": message(f), "status": status}
	var details []any
	if f.Code != "" {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": f.Code, "domain": "googleapis.com"})
	}
	if f.RetryAfter != "" {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f.RetryAfter + "s"})
	}
	if details != nil {
		e["details"] = details
	}
	return e
}

func (geminiWire) fail(w http.ResponseWriter, f Failure) {
	// Google sends the retry delay in the body, not in a header.
	writeJSON(w, f.Status, map[string]any{"error": geminiError(f)})
}

func (geminiWire) failInStream(out *events, f Failure) {
	f.Status = 503
	out.send("", map[string]any{"error": geminiError(f)})
}
