package executor

import (
	"bytes"
	"encoding/json"

	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// callersTrace returns the trace context that the caller put into _meta.
func callersTrace(call *tool.Call) (telemetry.Traceparent, bool) {
	meta := call.Meta
	if call.Params != nil {
		if !bytes.Contains(call.Params, []byte(telemetry.TraceparentHeader)) {
			return telemetry.Traceparent{}, false
		}
		meta = rawjson.Field(call.Params, "_meta")
	}
	if len(meta) == 0 {
		return telemetry.Traceparent{}, false
	}
	t, ok := telemetry.ParseTraceparent(rawjson.FieldString(meta, telemetry.TraceparentHeader))
	if ok {
		t.State = rawjson.FieldString(meta, telemetry.TracestateHeader)
	}
	return t, ok
}

// traced returns the params of a request with the trace context in _meta, from
// where it is also copied to HTTP headers. Params of a call without a trace are
// returned unchanged.
func (f *callRun) traced(params json.RawMessage) json.RawMessage {
	if !f.trace.Valid() {
		return params
	}
	set := func(key, value string) {
		if value != "" && rawjson.FieldString(params, "_meta", key) != value {
			quoted, _ := json.Marshal(value) // a string always marshals
			params = rawjson.SetField(params, quoted, "_meta", key)
		}
	}
	set(telemetry.TraceparentHeader, f.trace.String())
	set(telemetry.TracestateHeader, f.trace.State)
	return params
}
