package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var waitingID = regexp.MustCompile(`"id":"(call_[A-Z0-9]+)"`)

// approvals: a call on one node waits for approval because the page is open on
// another node, and is approved on a third.
func (c *nodes) approvals(t *testing.T) {
	ctx := ctxFor(t)
	req, err := http.NewRequestWithContext(ctx, "GET", c.all[1].url+"/api/approvals/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+rootKey)
	page, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	eventually(t, "the open page is known", func() bool {
		open, err := c.store.Values(ctx, "approvers")
		return err == nil && len(open) > 0
	})
	type outcome struct {
		status int
		body   string
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		status, body, err := c.call(ctx, c.all[0].url, `{"server":"tools","tool":"huge","arguments":{"bytes":42}}`)
		done <- outcome{status, body, err}
	}()
	id := ""
	eventually(t, "the call is in the inbox", func() bool {
		_, body, err := try(ctx, "GET", c.all[2].url+"/api/approvals", rootKey, "")
		if len(done) > 0 {
			t.Fatalf("the call did not wait: %+v", <-done)
		}
		m := waitingID.FindStringSubmatch(body)
		if err != nil || m == nil {
			return false
		}
		id = m[1]
		return true
	})
	if status, body, err := try(ctx, "POST", c.all[2].url+"/api/approvals/"+id, rootKey, `{"action":"allow"}`); status != 200 {
		t.Fatalf("allow: %d %s %v", status, body, err)
	}
	if o := <-done; o.status != 200 {
		t.Errorf("the call: %d %s %v", o.status, o.body, o.err)
	}
	eventually(t, "the decision is in the audit log", func() bool {
		_, body, err := try(ctx, "GET", c.all[1].url+"/api/audit?action=approval.allow", rootKey, "")
		return err == nil && strings.Contains(body, id)
	})
}
