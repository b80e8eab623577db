package mcp

import (
	"errors"
	"testing"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

func TestSignInRequired(t *testing.T) {
	own := &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "sign in", Details: map[string]any{"server": "jira", "caller": "key:1", "url": "https://login.example/?state=x"}}
	e := SignInRequired(own)
	if e == nil || e.Code != CodeURLElicitation {
		t.Fatalf("error = %+v", e)
	}
	n := 0
	for elicitation := range rawjson.Elements(rawjson.Field(e.Data, "elicitations")) {
		n++
		for key, want := range map[string]string{"mode": "url", "url": "https://login.example/?state=x"} {
			if got := rawjson.FieldString(elicitation, key); got != want {
				t.Errorf("%s = %q, want %q", key, got, want)
			}
		}
		if rawjson.FieldString(elicitation, "elicitationId") == "" || rawjson.FieldString(elicitation, "message") == "" {
			t.Errorf("elicitation %s", elicitation)
		}
	}
	if n != 1 {
		t.Errorf("%d elicitations in %s", n, e.Data)
	}
	// A client cannot sign in to a login that callers share.
	for _, err := range []error{
		nil, errors.New("x"), &tool.Error{Kind: tool.Denied, Details: own.Details}, &tool.Error{Kind: tool.UpstreamAuthRequired},
		&tool.Error{Kind: tool.UpstreamAuthRequired, Details: map[string]any{"server": "jira", "url": "https://login.example"}},
	} {
		if e := SignInRequired(err); e != nil {
			t.Errorf("SignInRequired(%v) = %+v", err, e)
		}
	}
}
