package e2e

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"junctor/internal/mcpserver"
)

// taskServerURL starts a server with tasks and returns its URL.
func taskServerURL(t *testing.T) string {
	t.Helper()
	server := mcpserver.New(mcpserver.Options{}, &taskServer{tasks: map[string]*serverTask{}})
	ts := httptest.NewServer(server)
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close(); server.Close() })
	return ts.URL
}

var (
	inputID     = regexp.MustCompile(`"inputs":\[\{"id":"([^"]+)"`)
	beginsATask = `{"call":{"name":"jobs__confirm_delete","input":{}},"provider":"anthropic","wait":false}`
)

// beginTask starts a call on the node that is killed first. The server runs it
// as a task that asks a question.
func (c *nodes) beginTask(t *testing.T) (id, question string) {
	ctx := ctxFor(t)
	node := c.all[c.owner(t)]
	status, body, err := try(ctx, "POST", node.url+"/execute", rootKey, beginsATask)
	m := waitingID.FindStringSubmatch(body)
	if status != 202 || m == nil {
		t.Fatalf("a call that is left: %d %s %v", status, body, err)
	}
	eventually(t, "the task's question", func() bool {
		_, body, err = try(ctx, "GET", c.proxy+"/api/calls/"+m[1], rootKey, "")
		asked := inputID.FindStringSubmatch(body)
		if asked == nil {
			return false
		}
		question = asked[1]
		return true
	})
	return m[1], question
}

// endTask answers the question on another node, which has taken over the task
// of the dead one. If that node died too, the answer counts for the next one,
// unless that one has already asked again.
func (c *nodes) endTask(t *testing.T, id, question string) {
	ctx := ctxFor(t)
	eventually(t, "an answer to the question of the node that took the task over", func() bool {
		_, body, _ := try(ctx, "GET", c.proxy+"/api/calls/"+id, rootKey, "")
		asked := inputID.FindStringSubmatch(body)
		if asked == nil || asked[1] == question {
			return false
		}
		status, _, _ := try(ctx, "POST", c.proxy+"/api/calls/"+id, rootKey, `{"input":"`+asked[1]+`","answer":{"action":"accept","content":{"name":"x","confirm":true}}}`)
		return status == 200
	})
	eventually(t, "the result of the task", func() bool {
		_, body, _ := try(ctx, "GET", c.proxy+"/api/calls/"+id, rootKey, "")
		return strings.Contains(body, `"status":"completed"`) && strings.Contains(body, "answered 1")
	})
}
