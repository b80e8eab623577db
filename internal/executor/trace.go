package executor

import (
	"bytes"
	"encoding/json"

	"go.opentelemetry.io/otel/trace"

	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
)

// callerTrace returns the trace context in the caller's _meta, if any.
func callerTrace(meta json.RawMessage) trace.SpanContext {
	if !bytes.Contains(meta, []byte(telemetry.TraceparentHeader)) {
		return trace.SpanContext{}
	}
	return telemetry.ParseTrace(rawjson.FieldString(meta, telemetry.TraceparentHeader), rawjson.FieldString(meta, telemetry.TracestateHeader))
}

// withTrace returns the params of a request with the trace context in _meta, from
// which it is also copied to HTTP headers. Without a trace the params are
// returned unchanged.
func (f *callRun) withTrace(params json.RawMessage) json.RawMessage {
	if !f.trace.IsValid() {
		return params
	}
	set := func(key, value string) {
		if value != "" && rawjson.FieldString(params, "_meta", key) != value {
			quoted, _ := json.Marshal(value) // a string always marshals
			params = rawjson.SetField(params, quoted, "_meta", key)
		}
	}
	parent, state := telemetry.FormatTrace(f.trace)
	set(telemetry.TraceparentHeader, parent)
	set(telemetry.TracestateHeader, state)
	return params
}
