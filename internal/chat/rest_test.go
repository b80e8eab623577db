package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/tool"
)

func TestSessionsOverHTTP(t *testing.T) {
	r := newFixture(t, toolScript)
	c := r.connect("")
	c.sendText("add 1 and 2")
	c.reply()
	r.awaitIdle(c.id)
	path := "/api/sessions/" + c.id

	_, list, _ := r.rest("GET", "/api/sessions?limit=10&before="+time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano), "")
	if all := list["sessions"].([]any); len(all) != 1 || all[0].(map[string]any)["title"] != "add 1 and 2" || all[0].(map[string]any)["active"] != false {
		t.Errorf("list %v", list)
	}
	if _, one, _ := r.rest("GET", path, ""); len(one["messages"].([]any)) != 4 {
		t.Errorf("session %v", one)
	}
	if status, one, _ := r.rest("PATCH", path, `{"title":"  Sums \n of mine ","model":"m"}`); status != 200 || one["title"] != "Sums of mine" || one["model"] != "m" {
		t.Errorf("renamed %v", one)
	}
	if m := c.kind(wire.TypeSession); m.Payload.Title != "Sums of mine" {
		t.Errorf("watchers were told %s", m.Raw)
	}
	for body, want := range map[string]int{`{"title":""}`: 400, `{"title":"` + strings.Repeat("x", 300) + `"}`: 400, `{"model":"nope"}`: 400, `{"name":"x"}`: 400, `nonsense`: 400, `{"title":"` + strings.Repeat("x", 100_000) + `"}`: 413} {
		if status, _, raw := r.rest("PATCH", path, body); status != want {
			t.Errorf("%.40s: %d %s", body, status, raw)
		}
	}
	_, _, md := r.rest("GET", path+"/export", "")
	for _, want := range []string{"# Sums of mine", "## You\n\nadd 1 and 2", "**Call of `calc:add`**", "\"a\": 1", "**Result of `calc__add`**\n\n```\n3\n```", "It is 3."} {
		if !strings.Contains(md, want) {
			t.Errorf("the export lacks %q:\n%s", want, md)
		}
	}
	if _, js, _ := r.rest("GET", path+"/export?format=json", ""); len(js["messages"].([]any)) != 4 || js["title"] != "Sums of mine" {
		t.Errorf("JSON export %v", js)
	}
	for _, p := range []string{"/api/sessions?limit=x", "/api/sessions?before=x", path + "/export?format=pdf"} {
		if status, body, _ := r.rest("GET", p, ""); status != 400 || body["code"] != "INVALID_REQUEST" {
			t.Errorf("%s: %d %v", p, status, body)
		}
	}
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		if status, _, raw := r.rest(method, path+"?as=you", `{"title":"x"}`); status != 404 {
			t.Errorf("%s by someone else: %d %s", method, status, raw)
		}
	}
	if status, _, _ := r.rest("GET", path+"/export?as=you", ""); status != 404 {
		t.Errorf("export by someone else: %d", status)
	}
	if _, models, _ := r.rest("GET", "/api/models", ""); fmt.Sprint(models["models"]) != "[map[contextWindow:400000 default:true documents:true id:m model:gpt-test provider:openai]]" {
		t.Errorf("models %v", models)
	}
	if status, _, _ := r.rest("DELETE", path, ""); status != 204 {
		t.Errorf("delete: %d", status)
	}
	for {
		if _, err := c.read(); err != nil {
			if websocket.CloseStatus(err) != closeDeleted {
				t.Errorf("watcher of a deleted session: %v", err)
			}
			break
		}
	}
	if status, _, _ := r.rest("GET", path, ""); status != 404 {
		t.Errorf("deleted, and still there: %d", status)
	}
	r.set = llm.NewSet()
	if _, models, _ := r.rest("GET", "/api/models", ""); !strings.Contains(fmt.Sprint(models["message"]), "no model") {
		t.Errorf("without models: %v", models)
	}
}

func TestDeleteEndsTheReply(t *testing.T) {
	r := newFixture(t, slowScript)
	c := r.connect("")
	c.sendText("call")
	<-r.ups.begun
	if status, _, raw := r.rest("DELETE", "/api/sessions/"+c.id, ""); status != 204 {
		t.Fatalf("%d %s", status, raw)
	}
	if _, err := r.host.Open(t.Context(), tool.Local, c.id); err == nil {
		t.Error("it is still there")
	}
}
