package mcp

import (
	"encoding/json"
	"junctor/internal/rawjson"
)

// requestFields are the members of a request's params and of their _meta that
// the gateway looks at, found in one walk through each.
type requestFields struct {
	of json.RawMessage // the params that were read

	name, uri, arguments, meta, state                 json.RawMessage
	version, client, capabilities, logLevel, progress json.RawMessage // of meta
}

// readFields reads params. The last of a repeated member counts, as everywhere.
func readFields(params json.RawMessage) *requestFields {
	f := &requestFields{of: params}
	for m := range rawjson.Positions(params) {
		if field := f.param(m.Name(params)); field != nil {
			*field = m.Value(params)
		}
	}
	for m := range rawjson.Positions(f.meta) {
		if field := f.inMeta(m.Name(f.meta)); field != nil {
			*field = m.Value(f.meta)
		}
	}
	return f
}

func (f *requestFields) param(name []byte) *json.RawMessage {
	switch string(name) {
	case "name":
		return &f.name
	case "uri":
		return &f.uri
	case "arguments":
		return &f.arguments
	case "_meta":
		return &f.meta
	case "requestState":
		return &f.state
	}
	return nil
}

func (f *requestFields) inMeta(name []byte) *json.RawMessage {
	switch string(name) {
	case MetaProtocolVersion:
		return &f.version
	case MetaClientInfo:
		return &f.client
	case MetaClientCapabilities:
		return &f.capabilities
	case MetaLogLevel:
		return &f.logLevel
	case "progressToken":
		return &f.progress
	}
	return nil
}

// read reports whether f is of these very params.
func (f *requestFields) read(params json.RawMessage) bool {
	return f != nil && len(f.of) == len(params) && (len(params) == 0 || &f.of[0] == &params[0])
}

// paramFields returns the members of the params that are looked at.
func (m *Message) paramFields() *requestFields {
	if !m.fields.read(m.Params) {
		m.fields = readFields(m.Params)
	}
	return m.fields
}

func (r *Request) paramFields() *requestFields {
	if !r.fields.read(r.Params) {
		r.fields = readFields(r.Params)
	}
	return r.fields
}

// Name returns the name in the params: of a tool or a prompt.
func (r *Request) Name() string { return rawjson.FieldString(r.paramFields().name) }

// Arguments returns the arguments in the params, nil when there are none.
func (r *Request) Arguments() json.RawMessage { return r.paramFields().arguments }

// Meta returns the _meta of the params, nil when there is none.
func (r *Request) Meta() json.RawMessage { return r.paramFields().meta }
