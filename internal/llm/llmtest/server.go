package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxBody bounds the size of a request. Real services have similar limits.
const maxBody = 64 << 20

// Server is a scripted model. It is an [http.Handler]; every wire format has
// its own paths, below whatever prefix a client's base URL adds.
type Server struct {
	// URL is set by [Start].
	URL string

	mu       sync.Mutex
	script   Script
	used     map[int]int // replies per rule
	requests []*Request
	ids      int
	issued   map[string]bool // issued signatures and encrypted reasoning
	closed   chan struct{}
	once     sync.Once
}

// New returns a server that follows script. It panics if the script is invalid,
// as regexp.MustCompile does; use [ParseScript] for scripts from outside.
func New(script Script) *Server {
	script.Rules = slices.Clone(script.Rules)
	if err := script.compile(); err != nil {
		panic(err)
	}
	return &Server{script: script, used: map[int]int{}, issued: map[string]bool{}, closed: make(chan struct{})}
}

// Start serves script on a loopback port until the test ends.
func Start(t testing.TB, script Script) *Server {
	t.Helper()
	s := New(script)
	ts := httptest.NewServer(s)
	s.URL = ts.URL
	t.Cleanup(func() {
		s.Close()
		ts.CloseClientConnections()
		ts.Close()
	})
	return s
}

// Close ends stalled replies.
func (s *Server) Close() { s.once.Do(func() { close(s.closed) }) }

// Requests returns the requests so far, oldest first.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Last returns the latest request, or nil.
func (s *Server) Last() *Request {
	all := s.Requests()
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// Replace replaces the script.
func (s *Server) Replace(script Script) {
	script.Rules = slices.Clone(script.Rules)
	if err := script.compile(); err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.used = script, map[int]int{}
}

// wire is one provider's format.
type wire interface {
	// parse parses and validates a request as the provider does.
	parse(s *Server, r *http.Request, body []byte) (*Request, *Failure)
	// stream and whole write an answer.
	stream(s *Server, out *events, req *Request, a answer)
	whole(s *Server, w http.ResponseWriter, req *Request, a answer)
	// fail writes an error instead of an answer, failInStream an error in a
	// stream that has begun.
	fail(w http.ResponseWriter, f Failure)
	failInStream(out *events, f Failure)
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.list(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body is too large or broke off", http.StatusRequestEntityTooLarge)
		return
	}
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		s.answer(w, r, chatWire{}, body)
	case strings.HasSuffix(path, "/responses"):
		s.answer(w, r, responsesWire{}, body)
	case strings.HasSuffix(path, "/messages"):
		s.answer(w, r, anthropicWire{}, body)
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		s.answer(w, r, geminiWire{}, body)
	case strings.HasSuffix(path, "/messages/count_tokens"):
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": tokens(body)})
	case strings.HasSuffix(path, ":countTokens"):
		writeJSON(w, http.StatusOK, map[string]any{"totalTokens": tokens(body)})
	default:
		http.NotFound(w, r)
	}
}

// list serves the model listings, including Ollama's.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	models := slices.Clone(s.script.Models)
	s.mu.Unlock()
	if len(models) == 0 {
		models = []string{"scripted"}
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/api/tags"):
		var list []any
		for _, m := range models {
			list = append(list, map[string]any{"name": m, "model": m, "size": 1, "details": map[string]any{"family": "scripted"}})
		}
		writeJSON(w, http.StatusOK, map[string]any{"models": list})
	case strings.HasSuffix(path, "/v1beta/models"):
		var list []any
		for _, m := range models {
			list = append(list, map[string]any{"name": "models/" + m, "supportedGenerationMethods": []string{"generateContent"}})
		}
		writeJSON(w, http.StatusOK, map[string]any{"models": list})
	case strings.HasSuffix(path, "/models"):
		var list []any
		for _, m := range models {
			list = append(list, map[string]any{"id": m, "object": "model", "type": "model", "display_name": m, "created": 1, "owned_by": "llmtest"})
		}
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list, "has_more": false})
	default:
		http.NotFound(w, r)
	}
}

// answer is a reply with its placeholders expanded.
type answer struct {
	reasoning string
	text      []string // in pieces
	calls     []call
	in, out   int // tokens
	stop      string
	reply     Reply
}

func (a answer) whole() string { return strings.Join(a.text, "") }

type call struct {
	id, namespace, name, args string
	malformed                 bool
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, f wire, body []byte) {
	if !json.Valid(body) {
		f.fail(w, Failure{Status: 400, Message: "We could not parse the JSON body of your request."})
		return
	}
	req, failure := f.parse(s, r, body)
	if req != nil {
		s.mu.Lock()
		s.requests = append(s.requests, req)
		s.mu.Unlock()
	}
	if failure == nil {
		failure = s.check(f, req, r, body)
	}
	if failure != nil {
		f.fail(w, *failure)
		return
	}
	a := s.choose(req, len(body))
	if a.reply.DelayMS > 0 && !s.wait(r, time.Duration(a.reply.DelayMS)*time.Millisecond) {
		return
	}
	if a.reply.Error != nil {
		f.fail(w, *a.reply.Error)
		return
	}
	if !req.Stream {
		if a.reply.StallAfter != 0 {
			s.stall(r)
			return
		}
		if a.reply.CutAfter != 0 {
			panic(http.ErrAbortHandler)
		}
		f.whole(s, w, req, a)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	out := &events{s: s, w: w, r: r, reply: a.reply, wire: f}
	if a.reply.StallAfter < 0 {
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		s.stall(r)
		return
	}
	f.stream(s, out, req, a)
}

// check rejects requests that every service rejects: a wrong key, an unknown
// model, unknown fields, a prompt that is too long.
func (s *Server) check(f wire, req *Request, r *http.Request, body []byte) *Failure {
	s.mu.Lock()
	script := s.script
	s.mu.Unlock()
	if script.Key != "" && key(r) != script.Key {
		if _, ok := f.(geminiWire); ok {
			return &Failure{Status: 400, Code: "API_KEY_INVALID", Message: "API key not valid. Please pass a valid API key."}
		}
		return &Failure{Status: 401, Code: "invalid_api_key", Message: "Incorrect API key provided: " + key(r) + ". You can find your API key in your settings."}
	}
	if len(script.Models) > 0 && !slices.Contains(script.Models, req.Model) {
		return &Failure{Status: 404, Code: "model_not_found", Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", req.Model)}
	}
	for _, name := range script.Reject {
		var fields map[string]json.RawMessage
		if json.Unmarshal(body, &fields) == nil && fields[name] != nil {
			return &Failure{Status: 400, Code: "unknown_parameter", Message: fmt.Sprintf("Unknown parameter: '%s'.", name)}
		}
	}
	if n := tokens(body); script.ContextWindow > 0 && n > script.ContextWindow {
		if _, ok := f.(anthropicWire); ok {
			return &Failure{Status: 400, Message: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, script.ContextWindow)}
		}
		if _, ok := f.(geminiWire); ok {
			return &Failure{Status: 400, Message: fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", n, script.ContextWindow)}
		}
		return &Failure{Status: 400, Code: "context_length_exceeded", Message: fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", script.ContextWindow, n)}
	}
	return nil
}

func key(r *http.Request) string {
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if k := r.Header.Get(name); k != "" {
			return k
		}
	}
	if k := r.URL.Query().Get("key"); k != "" {
		return k
	}
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func tokens(b []byte) int { return (len(b) + 3) / 4 }

// choose finds the matching rule and expands its placeholders.
func (s *Server) choose(req *Request, size int) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	rule := Rule{Reply: Reply{Text: "You said: {{user}}"}}
	if s.script.Default != nil {
		rule.Reply = *s.script.Default
	}
	for i := range s.script.Rules {
		r := &s.script.Rules[i]
		if (r.Times == 0 || s.used[i] < r.Times) && r.When.fits(req) {
			s.used[i]++
			rule = *r
			break
		}
	}
	reply := rule.Reply
	a := answer{reply: reply, in: (size + 3) / 4, stop: reply.Stop, reasoning: rule.When.expand(reply.Reasoning, req)}
	chunk := s.script.Chunk
	if chunk <= 0 {
		chunk = 6
	}
	a.text = slices.Repeat(pieces(rule.When.expand(reply.Text, req), chunk), max(1, reply.Repeat))
	for _, c := range reply.Calls {
		s.ids++
		out := call{id: "call_" + strconv.Itoa(s.ids), name: c.Tool, args: "{}"}
		if t, ok := req.Lookup(c.Tool); ok {
			out.namespace, out.name = t.Namespace, t.Name
		}
		if len(c.Args) > 0 {
			dec := json.NewDecoder(bytes.NewReader(c.Args))
			dec.UseNumber()
			var v any
			if dec.Decode(&v) == nil {
				b, _ := json.Marshal(rule.When.expandArgs(v, req))
				out.args = string(b)
			}
		}
		if c.ID != "" {
			out.id = c.ID
		}
		if c.Raw != "" {
			out.args, out.malformed = c.Raw, true
		}
		a.out += (len(out.args) + len(out.name) + 3) / 4
		a.calls = append(a.calls, out)
	}
	for _, t := range a.text {
		a.out += (len(t) + 3) / 4
	}
	return a
}

// issue returns an opaque token that the client must send back unchanged.
func (s *Server) issue(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	// Base64 without padding, like the services' tokens.
	token := fmt.Sprintf("%sSig%08dAAAA", kind, s.ids)
	token = token[:len(token)/4*4]
	s.issued[token] = true
	return token
}

func (s *Server) wasIssued(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issued[token]
}

func (s *Server) nextID(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return prefix + strconv.Itoa(s.ids)
}

func (s *Server) stall(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closed:
	}
}

func (s *Server) wait(r *http.Request, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
	case <-s.closed:
	}
	return false
}
