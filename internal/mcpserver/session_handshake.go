package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// newSession returns a session for the params of initialize. If the client's
// version is not supported, the session has the newest one that is.
func newSession(caller tool.Caller, params json.RawMessage) *Session {
	s := &Session{caller: caller, protocol: rawjson.FieldString(params, "protocolVersion")}
	if !slices.Contains(handshakeVersions, s.protocol) {
		s.protocol = mcp.Version20251125
	}
	// Clone, so that the session does not keep the whole request body in
	// memory.
	s.capabilities = slices.Clone(rawjson.Field(params, "capabilities"))
	s.client = slices.Clone(rawjson.Field(params, "clientInfo"))
	return s
}

// request returns the Request for a message of the session.
func (s *Session) request(m *mcp.Message, h http.Header, caller tool.Caller) *Request {
	return &Request{
		ID: m.ID, Method: m.Method, Params: m.Params, Protocol: s.protocol,
		Caller: caller, Client: s.client, Session: s, Header: h,
		Exchange: tool.Exchange{Capabilities: s.capabilities}, fields: m.Fields(),
	}
}

// initialize answers the first request of a session.
func (s *Server) initialize(ctx context.Context, r *Request) (result json.RawMessage, err error) {
	defer func() {
		if err == nil { // errors are logged by errorFor
			s.logSent(ctx, &mcp.Message{ID: r.ID, Result: result})
		}
	}()
	if rawjson.FieldString(r.Params, "protocolVersion") == "" {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "initialize must contain protocolVersion as a string"}
	}
	if len(r.Session.capabilities)+len(r.Session.client) > maxRecord {
		return nil, errLargeClient
	}
	d, err := s.handler.Describe(ctx, r)
	if err != nil {
		return nil, err
	}
	return rawjson.Marshal(struct {
		Protocol     string          `json:"protocolVersion"`
		Capabilities json.RawMessage `json:"capabilities"`
		Info         json.RawMessage `json:"serverInfo"`
		Instructions string          `json:"instructions,omitempty"`
	}{r.Protocol, orEmpty(d.Capabilities), orEmpty(d.Info), d.Instructions})
}
