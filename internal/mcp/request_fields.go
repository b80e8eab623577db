package mcp

import (
	"bytes"
	"encoding/json"
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
	for m := range members(params) {
		if field := f.param(memberName(params, m)); field != nil {
			*field = params[m.start:m.end:m.end]
		}
	}
	for m := range members(f.meta) {
		if field := f.inMeta(memberName(f.meta, m)); field != nil {
			*field = f.meta[m.start:m.end:m.end]
		}
	}
	return f
}

// memberName returns the name of a member as it is meant. It allocates only
// for names written with escapes.
func memberName(object []byte, m member) []byte {
	quoted := object[m.keyStart:m.keyEnd]
	if bytes.IndexByte(quoted, '\\') >= 0 {
		name, _ := text(quoted)
		return []byte(name)
	}
	return quoted[1 : len(quoted)-1]
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

// textOf returns the string of a field, "" when it is none.
func textOf(field json.RawMessage) string {
	s, _ := text(field)
	return s
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
func (r *Request) Name() string { return textOf(r.paramFields().name) }

// Arguments returns the arguments in the params, nil when there are none.
func (r *Request) Arguments() json.RawMessage { return r.paramFields().arguments }

// Meta returns the _meta of the params, nil when there is none.
func (r *Request) Meta() json.RawMessage { return r.paramFields().meta }
