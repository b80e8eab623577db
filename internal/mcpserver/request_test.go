package mcpserver

import (
	"encoding/json"
	"testing"
)

// Fields parsed from one request's params must not be used for other params.
func TestRequestFieldsFollowParams(t *testing.T) {
	r := &Request{Params: json.RawMessage(`{"name":"a","arguments":1,"_meta":{}}`)}
	if r.Name() != "a" || string(r.Arguments()) != "1" || string(r.Meta()) != "{}" {
		t.Errorf("%q, %s, %s", r.Name(), r.Arguments(), r.Meta())
	}
	r.Params = json.RawMessage(`{"name":"b"}`)
	if r.Name() != "b" || r.Arguments() != nil || r.Meta() != nil {
		t.Errorf("%q, %s, %s", r.Name(), r.Arguments(), r.Meta())
	}
	r.Params = nil
	if r.Name() != "" {
		t.Errorf("%q", r.Name())
	}
}
