package mcp

import (
	"encoding/json"

	"junctor/internal/rawjson"
)

// ParamFields are the members of a request's params and of their _meta that the
// gateway uses, found in one pass over each.
type ParamFields struct {
	of json.RawMessage // the params

	Name, URI, Arguments, Meta, State                      json.RawMessage
	Version, Client, Capabilities, LogLevel, ProgressToken json.RawMessage // of Meta
}

// ReadFields reads the params of a request. If a member is repeated, the last
// one counts.
func ReadFields(params json.RawMessage) *ParamFields {
	f := &ParamFields{of: params}
	for m := range rawjson.Positions(params) {
		if field := f.param(m.Name(params)); field != nil {
			*field = m.Value(params)
		}
	}
	for m := range rawjson.Positions(f.Meta) {
		if field := f.inMeta(m.Name(f.Meta)); field != nil {
			*field = m.Value(f.Meta)
		}
	}
	return f
}

func (f *ParamFields) param(name []byte) *json.RawMessage {
	switch string(name) {
	case "name":
		return &f.Name
	case "uri":
		return &f.URI
	case "arguments":
		return &f.Arguments
	case "_meta":
		return &f.Meta
	case "requestState":
		return &f.State
	}
	return nil
}

func (f *ParamFields) inMeta(name []byte) *json.RawMessage {
	switch string(name) {
	case MetaProtocolVersion:
		return &f.Version
	case MetaClientInfo:
		return &f.Client
	case MetaClientCapabilities:
		return &f.Capabilities
	case MetaLogLevel:
		return &f.LogLevel
	case "progressToken":
		return &f.ProgressToken
	}
	return nil
}

// IsOf reports whether f was read from params, the same bytes in memory.
func (f *ParamFields) IsOf(params json.RawMessage) bool {
	return f != nil && len(f.of) == len(params) && (len(params) == 0 || &f.of[0] == &params[0])
}

// Fields returns the ParamFields of the message, which it reads only once.
func (m *Message) Fields() *ParamFields {
	if !m.fields.IsOf(m.Params) {
		m.fields = ReadFields(m.Params)
	}
	return m.fields
}
