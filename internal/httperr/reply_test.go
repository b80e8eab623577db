package httperr

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/tool"
)

func TestJSONAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		value  any
		err    error
		status int
		body   string
	}{
		"value":   {map[string]string{"a": "<b>"}, nil, 200, `{"a":"<b>"}` + "\n"},
		"nothing": {nil, nil, 204, ""},
		"error":   {map[string]string{}, &tool.Error{Kind: tool.Denied, Msg: "not for you"}, 403, `"message":"not for you"`},
	} {
		w := httptest.NewRecorder()
		JSON(func(*http.Request) (any, error) { return tt.value, tt.err })(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestHandlerAnswersWithTheError(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		body   string
	}{
		{nil, 200, "written"},
		{&tool.Error{Kind: tool.Denied, Msg: "not for you"}, 403, `"message":"not for you"`},
	} {
		w := httptest.NewRecorder()
		Handler(func(w http.ResponseWriter, _ *http.Request) error {
			if tt.err == nil {
				_, _ = w.Write([]byte("written"))
			}
			return tt.err
		})(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) {
			t.Errorf("%v: %d %s", tt.err, w.Code, w.Body)
		}
	}
}

func TestReadJSONRefusesOtherMembers(t *testing.T) {
	invalid := &tool.Error{Kind: tool.InvalidRequest, Msg: "send a"}
	for body, want := range map[string]error{`{"a":1}`: nil, `{"b":1}`: invalid, `{`: invalid, ``: invalid} {
		var v struct{ A int }
		if err := ReadJSON(httptest.NewRequest("POST", "/", strings.NewReader(body)), &v, invalid); err != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}
