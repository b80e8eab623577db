package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// metaVersion returns the protocol version in the _meta of a request. A request
// that has one belongs to the stateless era.
func metaVersion(m *mcp.Message) string {
	if !m.IsRequest() {
		return ""
	}
	version := m.Fields().Version
	if string(version) == `"`+mcp.Version20260728+`"` { // avoids an allocation
		return mcp.Version20260728
	}
	return rawjson.FieldString(version)
}

// statelessRequest checks the _meta of a request of the stateless era.
func (s *Server) statelessRequest(m *mcp.Message) (*Request, *mcp.Error) {
	version := metaVersion(m)
	if version == "" {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("_meta must contain %q as a string", mcp.MetaProtocolVersion)}
	}
	if version != mcp.Version20260728 {
		return nil, unsupported(version)
	}
	fields := m.Fields()
	if !rawjson.IsObject(fields.Capabilities) {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("_meta must contain %q as an object", mcp.MetaClientCapabilities)}
	}
	client := fields.Client
	if client != nil && !rawjson.IsObject(client) {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("%q in _meta must be an object", mcp.MetaClientInfo)}
	}
	return &Request{ID: m.ID, Method: m.Method, Params: m.Params, Protocol: version, Client: client, fields: fields}, nil
}

// postStateless serves a POST of the stateless era.
func (s *Server) postStateless(p *post, m *mcp.Message) {
	switch {
	case m.IsResponse():
		s.reject(p.w, p.r, http.StatusBadRequest, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "protocol version " + mcp.Version20260728 + " accepts only requests and notifications"})
		return
	case m.IsNotification():
		p.w.WriteHeader(http.StatusAccepted) // the era defines none over HTTP
		return
	}
	req, refused := s.statelessRequest(m)
	if refused == nil || refused.Code == mcp.CodeUnsupportedProtocol {
		if mismatch := checkHeaders(p.r.Header, m); mismatch != nil {
			refused = mismatch
		}
	} else if p.r.Header.Get(headerProtocol) == "" {
		refused = mismatched("the %s header is missing", headerProtocol)
	}
	if refused != nil {
		refuse(p.w, statusOf(refused), m.ID, refused)
		return
	}
	if m.Method != mcp.MethodListen {
		s.answering.Add(1)
		defer s.answering.Add(-1)
	}
	req.Header, req.Caller = p.r.Header, p.caller
	req.lends = true
	st := newEventStream("", false, 1)
	st.plain = !p.events
	st.status = func(m *mcp.Message) int {
		if m.Error == nil {
			return http.StatusOK
		}
		return statusOf(m.Error)
	}
	res := &response{w: p.w, r: p.r, st: st, reader: firstReader, events: !p.json, plain: !p.events, srv: s}
	if res.events || rawjson.FieldString(req.paramFields().State) != "" || asksAnything(req.paramFields().Capabilities) {
		st.stop = s.startStateless(p.r.Context(), req, st)
		s.writeStream(res)
		return
	}
	c := s.inlineStatelessCall(p.r.Context(), req, st) // it cannot be parked, so it does not outlive its request
	st.stop = stopOf(c, st)
	s.runAndWrite(c, res)
}

// startStateless starts a request of the stateless era, or resumes the parked
// call that the request is a retry of. stop cancels the call with a cause,
// unless it has ended or is parked.
func (s *Server) startStateless(ctx context.Context, req *Request, out outlet) (stop context.CancelCauseFunc) {
	if state := rawjson.FieldString(req.paramFields().State); s.parked.owns(state) {
		life, stop := context.WithCancelCause(ctx)
		s.resume(life, req, state, out)
		return stop
	} else if node := s.parkedAt(ctx, state); node != "" {
		life, stop := context.WithCancelCause(ctx)
		go s.resumeAt(life, node, req, state, out)
		return stop
	}
	c := s.statelessCall(ctx, nil, req, out)
	s.workers.do(c)
	return stopOf(c, out)
}

// stopOf returns a function that cancels the call with a cause if out is still
// its outlet.
func stopOf(c *call, out outlet) context.CancelCauseFunc {
	return func(cause error) {
		if cause != nil {
			c.leave(out, cause)
		}
	}
}

func (s *Server) statelessCall(ctx, life context.Context, req *Request, out outlet) *call {
	return s.newCall(ctx, life, req, out).applyMeta()
}

// inlineStatelessCall is statelessCall for a call that uses the context of its
// request, and so ends with it.
func (s *Server) inlineStatelessCall(ctx context.Context, req *Request, out outlet) *call {
	c := &call{srv: s, req: req, id: req.ID, out: out, token: req.paramFields().ProgressToken}
	ctx, end := tool.SetCancel(ctx)
	c.ctx, c.end = ctx, func(cause error) {
		if cause != nil {
			end(cause)
		}
	}
	return c.applyMeta()
}

// applyMeta sets the Exchange and the log level of a call from the _meta of its
// request.
func (c *call) applyMeta() *call {
	req := c.req
	level := rawjson.FieldString(req.paramFields().LogLevel)
	if !mcp.ValidLogLevel(level) {
		level = "" // a caller that sets no level gets no log messages
	}
	c.level = level
	c.exchange(req.paramFields().Capabilities)
	return c
}

// statusOf maps errors of the stateless era to HTTP statuses.
func statusOf(e *mcp.Error) int {
	switch e.Code {
	case mcp.CodeMethodNotFound:
		return http.StatusNotFound
	case mcp.CodeParseError, mcp.CodeInvalidRequest, mcp.CodeInvalidParams, mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedProtocol:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func mismatched(format string, args ...any) *mcp.Error {
	return &mcp.Error{Code: mcp.CodeHeaderMismatch, Message: "header mismatch: " + fmt.Sprintf(format, args...)}
}

// checkHeaders compares the headers that mirror the body with the body.
func checkHeaders(h http.Header, m *mcp.Message) *mcp.Error {
	version := h.Get(headerProtocol)
	switch body := metaVersion(m); {
	case version == "":
		return mismatched("the %s header is missing", headerProtocol)
	case version != body:
		return mismatched("%s is %q, but the body says %q", headerProtocol, version, body)
	}
	if method := h.Get(headerMethod); method == "" {
		return mismatched("the %s header is missing", headerMethod)
	} else if method != m.Method {
		return mismatched("%s is %q, but the body says %q", headerMethod, method, m.Method)
	}
	var field json.RawMessage
	switch m.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet:
		field = m.Fields().Name
	case mcp.MethodResourcesRead:
		field = m.Fields().URI
	case mcp.MethodTasksGet, mcp.MethodTasksUpdate, mcp.MethodTasksCancel:
		field = rawjson.Field(m.Params, "taskId")
	default:
		return nil
	}
	name, ok := mcp.ParseHeaderValue(h.Get(headerName))
	if ok && name != "" && len(field) == len(name)+2 && field[0] == '"' && string(field[1:len(field)-1]) == name && strings.IndexByte(name, '\\') < 0 {
		return nil // the common case, without a copy
	}
	switch body := rawjson.FieldString(field); {
	case !ok:
		return mismatched("%s is not valid base64", headerName)
	case name == "":
		return mismatched("the %s header is missing", headerName)
	case name != body:
		return mismatched("%s is %q, but the body says %q", headerName, name, body)
	}
	return nil
}

// CheckParamHeaders compares the Mcp-Param-* headers of a tools/call with its
// arguments, for the parameters that the tool's input schema marks with
// x-mcp-header. If h is nil, because the request did not arrive over HTTP, it
// returns nil.
func CheckParamHeaders(h http.Header, inputSchema, arguments json.RawMessage) error {
	if h == nil || !bytes.Contains(inputSchema, []byte("x-mcp-header")) {
		return nil
	}
	params, err := mcp.HeaderParams(inputSchema)
	if err != nil {
		return nil // invalid annotations are ignored
	}
	for _, p := range params {
		if e := checkParam(h, "Mcp-Param-"+p.Header, rawjson.Field(arguments, p.Path...)); e != nil {
			return e
		}
	}
	return nil
}

func checkParam(h http.Header, header string, value json.RawMessage) *mcp.Error {
	got := h.Values(header)
	if value == nil || rawjson.IsNull(value) {
		if len(got) > 0 {
			return mismatched("%s is set, but the argument is not", header)
		}
		return nil
	}
	if len(got) == 0 {
		return mismatched("the %s header is missing", header)
	}
	decoded, ok := mcp.ParseHeaderValue(got[0])
	if !ok {
		return mismatched("%s is not valid base64", header)
	}
	want, ok := mcp.HeaderText(value)
	if !ok {
		return mismatched("%s is set, but the argument is not a string, integer or boolean", header)
	}
	if decoded == want {
		return nil
	}
	if value[0] != '"' { // 42 and 42.0 are the same number
		if got, ok := mcp.HeaderText(json.RawMessage(decoded)); ok && got == want && decoded[0] != '"' {
			return nil
		}
	}
	return mismatched("%s differs from the argument", header)
}

// cacheable are the methods whose results include a cache lifetime.
var cacheable = []string{mcp.MethodDiscover, mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList, mcp.MethodResourcesRead}

// makeStateless adds the members to a response that the stateless era requires
// and that an upstream of the handshake era did not write.
func (c *call) makeStateless(m *mcp.Message) {
	if m.Error != nil {
		c.makeStatelessError(m)
		return
	}
	if m.Result == nil {
		m.Result = json.RawMessage(`{}`)
	}
	m.ResultPrefix = c.srv.missingMembers(m.Result, slices.Contains(cacheable, c.req.Method))
}

// missingMembers returns the required members that a result lacks, each
// followed by a comma.
func (s *Server) missingMembers(result json.RawMessage, cached bool) []byte {
	if result[rawjson.SkipSpace(result, 0)] != '{' {
		return nil
	}
	var has struct{ kind, ttl, scope, meta bool }
	for m := range rawjson.TrustedPositions(result) {
		switch string(result[m.KeyStart:m.KeyEnd]) {
		case `"resultType"`:
			has.kind = true
		case `"ttlMs"`:
			has.ttl = true
		case `"cacheScope"`:
			has.scope = true
		case `"_meta"`:
			has.meta = true
		}
	}
	if !cached && !has.kind && !has.meta {
		return s.defaultMembers
	}
	add := make([]byte, 0, 64+len(s.defaultMembers))
	if !has.kind {
		add = append(add, resultComplete...)
	}
	if cached && !has.ttl {
		add = append(add, `"ttlMs":0,`...)
	}
	if cached && !has.scope {
		add = append(add, `"cacheScope":"private",`...)
	}
	if !has.meta {
		add = append(add, s.defaultMembers[len(resultComplete):]...)
	}
	return add
}

const resultComplete = `"resultType":"complete",`

// defaultMembers returns the members that results of older servers lack.
func defaultMembers(info json.RawMessage) []byte {
	if len(info) == 0 {
		return []byte(resultComplete)
	}
	return []byte(resultComplete + `"_meta":{"` + mcp.MetaServerInfo + `":` + string(info) + "},")
}

// makeStatelessError converts errors that the stateless era does not have. A
// missing resource becomes invalid params, and a URL to visit first becomes a
// request for input.
func (c *call) makeStatelessError(m *mcp.Message) {
	switch m.Error.Code {
	case mcp.CodeResourceNotFound:
		e := *m.Error
		e.Code = mcp.CodeInvalidParams
		m.Error = &e
	case mcp.CodeURLElicitation:
		if rawjson.Field(c.req.Exchange.Capabilities, "elicitation", "url") == nil || !mcp.MayNeedInput(c.req.Method) {
			return
		}
		var asks []byte
		n := 0
		for e := range rawjson.Elements(rawjson.Field(m.Error.Data, "elicitations")) {
			if n > 0 {
				asks = append(asks, ',')
			}
			n++
			asks = append(asks, `"url-`+strconv.Itoa(n)+`":{"method":"elicitation/create","params":`...)
			asks = append(append(asks, rawjson.SetField(e, json.RawMessage(`"url"`), "mode")...), '}')
		}
		if n > 0 {
			m.Error = nil
			m.Result = json.RawMessage(`{"resultType":"input_required","inputRequests":{` + string(asks) + `}}`)
		}
	}
}

// discover answers server/discover.
func (s *Server) discover(ctx context.Context, r *Request) (json.RawMessage, error) {
	d, err := s.handler.Describe(ctx, r)
	if err != nil {
		return nil, err
	}
	scope := "private"
	if d.Public {
		scope = "public"
	}
	return rawjson.Marshal(struct {
		ResultType   string                     `json:"resultType"`
		Versions     []string                   `json:"supportedVersions"`
		Capabilities json.RawMessage            `json:"capabilities"`
		Info         json.RawMessage            `json:"serverInfo"`
		Instructions string                     `json:"instructions,omitempty"`
		TTL          int64                      `json:"ttlMs"`
		Scope        string                     `json:"cacheScope"`
		Meta         map[string]json.RawMessage `json:"_meta"`
	}{
		"complete", serverVersions, orEmpty(d.Capabilities), orEmpty(d.Info), d.Instructions,
		int64(d.TTL / time.Millisecond), scope, map[string]json.RawMessage{mcp.MetaServerInfo: orEmpty(d.Info)},
	})
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`{}`)
	}
	return raw
}
