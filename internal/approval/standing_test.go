package approval

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"junctor/internal/profile"
	"junctor/internal/tool"
)

// TestProfileHidesApprovalsOfOtherTools checks that a caller limited to a
// profile sees and revokes only approvals of tools in the profile, although all
// approvals are of the same caller.
func TestProfileHidesApprovalsOfOtherTools(t *testing.T) {
	t.Parallel()
	n := cluster(t, 1, DefaultConfig())[0]
	set := profile.New(map[string]profile.Config{"mine": {Tools: []string{"mine:echo"}}}, profile.Options{Servers: func() []string { return []string{"mine", "fs"} }})
	whole := tool.Caller{ID: "key:a"}
	narrow := set.Bind(whole, "mine")
	write := n.inbox.Standing.Subject(tool.Name{Server: "fs", Tool: "write"})
	for _, subject := range []string{write, "mine:echo"} {
		if err := n.inbox.Standing.AllowAlways(t.Context(), whole, subject); err != nil {
			t.Fatal(err)
		}
	}
	mux := http.NewServeMux()
	n.inbox.Routes(mux)
	send := func(caller tool.Caller, method, path string) (int, string) {
		w := httptest.NewRecorder()
		n.as(caller)(mux).ServeHTTP(w, httptest.NewRequest(method, "/api/approvals"+path, nil))
		return w.Code, w.Body.String()
	}
	if code, body := send(narrow, "GET", ""); code != 200 || strings.Contains(body, "fs:write") || !strings.Contains(body, "mine:echo") {
		t.Errorf("with the profile: %d %s", code, body)
	}
	for _, subject := range []string{"fs:write", strings.Replace(write, " ", "%20", 1), "fs:nothing"} {
		if code, body := send(narrow, "DELETE", "/"+subject); code != 404 || !strings.Contains(body, "has no standing approval") {
			t.Errorf("DELETE %s with the profile: %d %s", subject, code, body)
		}
	}
	if allowed, err := n.inbox.Standing.AllowedAlways(t.Context(), whole.ID, write); !allowed || err != nil {
		t.Errorf("the approval afterwards: %t, %v", allowed, err)
	}
	if code, body := send(narrow, "DELETE", "/mine:echo"); code >= 300 {
		t.Errorf("DELETE of what is in the profile: %d %s", code, body)
	}
	if code, body := send(whole, "GET", ""); code != 200 || !strings.Contains(body, "fs:write") || strings.Contains(body, "mine:echo") {
		t.Errorf("without the profile: %d %s", code, body)
	}
}
