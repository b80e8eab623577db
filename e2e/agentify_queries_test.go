package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/llm/llmtest"
)

// request is one query with its context, the call that a good model makes for
// it, and the expected result of that call.
type request struct {
	query   string
	context string // JSON; FOLDER stands for the working folder
	tool    string // must be among the candidates; "" means that nothing must be called
	args    string // from the model, before the context is filled in
	plan    string // part of the plan; FOLDER as above
	result  string // part of the backend's result
}

const (
	inFolder = `{"currentWorkingDirectory":"FOLDER"}`
	onReport = `{"currentWorkingDirectory":"FOLDER","activeDocumentURI":"file://FOLDER/report.md"}`
	onPoem   = `{"selectionText":"roses are red\nviolets are blue","activeDocumentURI":"untitled:Untitled-1"}`
)

// requests are queries in natural language for the reference servers and the
// built-in one. They run in this order, because some depend on others.
var requests = []request{
	// The file system.
	{"show me what's in report.md", inFolder, "filesystem:read_text_file", `{"path":"report.md"}`, `"path":"FOLDER/report.md"`, "Quarterly report"},
	{"read this file", onReport, "filesystem:read_text_file", `{"path":"${context.activeDocumentPath}"}`, `"path":"FOLDER/report.md"`, "Quarterly report"},
	{"print only the first line of the open document", onReport, "filesystem:read_text_file", `{"path":"${context.activeDocumentURI}","head":1}`, `"path":"FOLDER/report.md"`, "# Quarterly report"},
	{"the last two lines of log.txt please", inFolder, "filesystem:read_text_file", `{"path":"./log.txt","tail":2}`, `"path":"FOLDER/log.txt"`, "third line"},
	{"which files are here?", inFolder, "filesystem:list_directory", `{"path":"."}`, `"path":"FOLDER"`, "report.md"},
	{"list this folder with the size of every file, biggest first", inFolder, "filesystem:list_directory_with_sizes", `{"path":".","sortBy":"size"}`, `"sortBy":"size"`, "Total"},
	{"show the whole tree of directories below here", inFolder, "filesystem:directory_tree", `{"path":"."}`, `"path":"FOLDER"`, "drafts"},
	{"compare report.md and log.txt: open both", inFolder, "filesystem:read_multiple_files", `{"paths":["report.md","log.txt"]}`, `"paths":["FOLDER/report.md","FOLDER/log.txt"]`, "third line"},
	{"make a new folder called archive", inFolder, "filesystem:create_directory", `{"path":"archive"}`, `"path":"FOLDER/archive"`, "Successfully"},
	{"save the selected text as poem.txt", `{"currentWorkingDirectory":"FOLDER","selectionText":"roses are \"red\"\nviolets"}`, "filesystem:write_file", `{"path":"poem.txt","content":"${context.selectionText}"}`, `roses are \"red\"\nviolets`, "Successfully"},
	{"rename poem.txt to verse.txt", inFolder, "filesystem:move_file", `{"source":"poem.txt","destination":"verse.txt"}`, `"destination":"FOLDER/verse.txt"`, "Successfully"},
	{"move log.txt into the archive folder", inFolder, "filesystem:move_file", `{"source":"log.txt","destination":"archive/log.txt"}`, `"source":"FOLDER/log.txt"`, "Successfully"},
	{"in the open file replace Quarterly by Annual", onReport, "filesystem:edit_file", `{"path":"report.md","edits":[{"oldText":"Quarterly","newText":"Annual"}]}`, `"path":"FOLDER/report.md"`, "Annual"},
	{"preview replacing Annual with Monthly in report.md without changing it", inFolder, "filesystem:edit_file", `{"path":"report.md","edits":[{"oldText":"Annual","newText":"Monthly"}],"dryRun":true}`, `"dryRun":true`, "Monthly"},
	{"find every markdown file under this directory", inFolder, "filesystem:search_files", `{"path":".","pattern":"**/*.md"}`, `"pattern":"**/*.md"`, "draft.md"},
	{"how big is report.md and when was it changed?", inFolder, "filesystem:get_file_info", `{"path":"report.md"}`, `"path":"FOLDER/report.md"`, "size"},
	{"which directories am I allowed to touch?", ``, "filesystem:list_allowed_directories", `{}`, `"list_allowed_directories"`, "Allowed"},
	{"load the picture dot.png", inFolder, "filesystem:read_media_file", `{"path":"dot.png"}`, `"path":"FOLDER/dot.png"`, "image/png"},
	{"open ../secret.txt", inFolder, "filesystem:read_text_file", `{"path":"../secret.txt"}`, `secret.txt"`, "denied"},

	// The memory.
	{"remember that Ada is a person who likes tea", ``, "memory:create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["likes tea"]}]}`, `"create_entities"`, "Ada"},
	{"also remember a company named Analytical Engines", ``, "memory:create_entities", `{"entities":[{"name":"Analytical Engines","entityType":"company","observations":[]}]}`, `Analytical Engines`, "company"},
	{"note that Ada works at Analytical Engines", ``, "memory:create_relations", `{"relations":[{"from":"Ada","to":"Analytical Engines","relationType":"works at"}]}`, `"relationType":"works at"`, "works at"},
	{"add the observation that Ada plays chess", ``, "memory:add_observations", `{"observations":[{"entityName":"Ada","contents":["plays chess"]}]}`, `plays chess`, "plays chess"},
	{"what do you know about tea drinkers? search the knowledge graph", ``, "memory:search_nodes", `{"query":"tea"}`, `"query":"tea"`, "Ada"},
	{"open the entity Ada", ``, "memory:open_nodes", `{"names":["Ada"]}`, `"names":["Ada"]`, "plays chess"},
	{"dump everything in the knowledge graph", ``, "memory:read_graph", `{}`, `"read_graph"`, "works at"},
	{"forget the observation that Ada likes tea", ``, "memory:delete_observations", `{"deletions":[{"entityName":"Ada","observations":["likes tea"]}]}`, `likes tea`, "success"},
	{"remove the relation between Ada and Analytical Engines", ``, "memory:delete_relations", `{"relations":[{"from":"Ada","to":"Analytical Engines","relationType":"works at"}]}`, `"delete_relations"`, "success"},
	{"delete the entity Analytical Engines", ``, "memory:delete_entities", `{"entityNames":["Analytical Engines"]}`, `"entityNames":["Analytical Engines"]`, "success"},
	{"remember the selection as a poem", onPoem, "memory:create_entities", `{"entities":[{"name":"poem","entityType":"text","observations":["${context.selectionText}"]}]}`, `roses are red\nviolets are blue`, "violets"},
	{"fetch the resource with the full knowledge graph", ``, "agentify:read_resource", `{"backend":"memory","uri":"memory://knowledge-graph"}`, `"mcpMethod":"resources/read"`, "chess"},

	// The everything server: tools, resources, prompts.
	{"echo the selection back to me", onPoem, "everything:echo", `{"message":"${context.selectionText}"}`, `roses are red`, "Echo: roses are red"},
	{"get the sum of 17 and 25", ``, "everything:get-sum", `{"a":17,"b":25}`, `"a":17`, "42"},
	{"give me the tiny image", ``, "everything:get-tiny-image", `{}`, `"get-tiny-image"`, `"type":"image"`},
	{"show an annotated error message", ``, "everything:get-annotated-message", `{"messageType":"error"}`, `"messageType":"error"`, "Error"},
	{"structured weather content for Chicago", ``, "everything:get-structured-content", `{"location":"Chicago"}`, `"location":"Chicago"`, "structuredContent"},
	{"give me two resource links", ``, "everything:get-resource-links", `{"count":2}`, `"count":2`, "resource_link"},
	{"run a long operation for one second in two steps", ``, "everything:trigger-long-running-operation", `{"duration":1,"steps":2}`, `"steps":2`, "completed"},
	{"read the document about the architecture of the everything server", ``, "agentify:read_resource", `{"backend":"everything","uri":"demo://resource/static/document/architecture.md"}`, `architecture.md`, "contents"},
	{"get dynamic text resource number 7", ``, "agentify:read_resource", `{"backend":"everything","uri":"demo://resource/dynamic/text/7"}`, `"uri":"demo://resource/dynamic/text/7"`, "contents"},
	{"use the arguments prompt for the city Paris", ``, "agentify:get_prompt", `{"backend":"everything","name":"args-prompt","arguments":{"city":"Paris"}}`, `"mcpMethod":"prompts/get"`, "Paris"},
	{"insert the simple prompt", ``, "agentify:get_prompt", `{"backend":"everything","name":"simple-prompt"}`, `"name":"simple-prompt"`, "messages"},

	// The built-in server.
	{"what time is it in Tokyo?", ``, "junctor:time", `{"zone":"Asia/Tokyo"}`, `"zone":"Asia/Tokyo"`, "Asia/Tokyo"},
	{"calculate the square root of 1764", ``, "junctor:calculate", `{"expression":"sqrt(1764)"}`, `sqrt(1764)`, "42"},
	{"make the selected text upper case", onPoem, "junctor:text", `{"operation":"upper","text":"${context.selectionText}"}`, `"operation":"upper"`, "VIOLETS ARE BLUE"},
	{"sha256 of the selection", `{"selectionText":"abc"}`, "junctor:text", `{"operation":"sha256","text":"${context.selectionText}"}`, `"text":"abc"`, "ba7816bf"},
	{"how many words did I select?", onPoem, "junctor:text", `{"operation":"count","text":"${context.selectionText}"}`, `"operation":"count"`, "6"},
	{"which MCP servers are up in this gateway?", ``, "junctor:status", `{}`, `"status"`, "everything"},

	// Nothing to call.
	{"delete it", ``, "", "", "", ""},
	{"open the file", ``, "", "", "", ""},
	{"book a flight to Lisbon for tomorrow", inFolder, "", "", "", ""},
	{"do the thing we talked about", onPoem, "", "", "", ""},
	{"???", ``, "", "", "", ""},
	{"bake a chocolate cake", ``, "", "", "", ""},
}

// TestAgentifyQueries sends queries in natural language to real servers. The
// scripted model makes the call only if it receives the right candidate.
func TestAgentifyQueries(t *testing.T) {
	t.Parallel()
	suiteNode(t)
	fileServer := nodeModule(t, "@modelcontextprotocol", "server-filesystem", "dist", "index.js")
	memory := nodeModule(t, "@modelcontextprotocol", "server-memory", "dist", "index.js")
	all := nodeModule(t, "@modelcontextprotocol", "server-everything", "dist", "index.js")

	script := llmtest.Script{Default: &llmtest.Reply{Text: "THE RIGHT TOOL WAS NOT OFFERED, only {{tools}}"}}
	for _, r := range requests {
		if r.tool == "" {
			script.Rules = append(script.Rules, declines(r.query, "Something essential is missing."))
		} else {
			script.Rules = append(script.Rules, chooses(r.query, r.tool, r.args))
		}
	}
	model := llmtest.Start(t, script)
	h := newHome(t, `{}`)
	folder := filepath.Join(h.dir, "project")
	for name, text := range map[string]string{
		"report.md": "# Quarterly report\n\nAll is well.\n", "log.txt": "first line\nsecond line\nthird line\n", "drafts/draft.md": "later",
		"dot.png": "\x89PNG\r\n\x1a\n",
	} {
		h.write("project/"+name, text)
	}
	h.write("secret.txt", "not for you")
	h.write("junctor.json", fmt.Sprintf(`{
		"builtin": true,
		"llm": {"provider": "openai", "model": "scripted", "apiKey": "sk-test", "baseUrl": %q},
		"mcpServers": {
			"filesystem": {"command": "node", "args": [%q, %q], "startTimeoutMs": 60000},
			"memory": {"command": "node", "args": [%q], "env": {"MEMORY_FILE_PATH": %q}, "startTimeoutMs": 60000},
			"everything": {"command": "node", "args": [%q], "startTimeoutMs": 60000}
		}}`, model.URL+"/v1", fileServer, folder, memory, filepath.Join(h.dir, "memory.json"), all))
	g := h.serve().ready("filesystem", "memory", "everything", "junctor")

	// The server is called with the real path of the folder, without symbolic
	// links.
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		t.Fatal(err)
	}
	place := func(s string) string { return strings.ReplaceAll(s, "FOLDER", real) }
	ask := func(path, body string) (int, string) {
		t.Helper()
		res, err := http.Post(g.url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	called, refused := 0, 0
	for _, r := range requests {
		t.Run(r.query, func(t *testing.T) {
			body := fmt.Sprintf(`{"query":%s,"context":%s}`, quoted(r.query), place(orNull(r.context)))
			before := len(callLog(t, g))
			code, got := ask("/api/orchestrate", body)
			calls := callLog(t, g)[before:]
			if r.tool == "" {
				refused++
				if code != 422 || !strings.Contains(got, "NO_ACTION") || !strings.Contains(got, "Something essential") || !strings.Contains(got, `"suggestions"`) {
					t.Errorf("%d %s", code, got)
				}
				if len(calls) != 0 {
					t.Errorf("called %v", calls)
				}
				return
			}
			called++
			if code != 200 {
				t.Fatalf("%d %s", code, got)
			}
			var out struct {
				Plan, Result json.RawMessage
			}
			if err := json.Unmarshal([]byte(got), &out); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(out.Plan), place(r.plan)) {
				t.Errorf("plan %s\nwithout %s", out.Plan, place(r.plan))
			}
			if !strings.Contains(string(out.Result), r.result) {
				t.Errorf("result %.600s\nwithout %s", out.Result, r.result)
			}
			if len(calls) != 1 {
				t.Errorf("calls %v, want one", calls)
			}
		})
	}
	if called < 40 || refused < 5 {
		t.Errorf("%d requests led to a call, %d to none", called, refused)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "verse.txt")); err != nil || string(text) != "roses are \"red\"\nviolets" {
		t.Errorf("verse.txt has %q, %v", text, err)
	}
}

// callLog returns the calls so far, except for the lists that planning reads.
func callLog(t *testing.T, g *gateway) []string {
	t.Helper()
	res, err := http.Get(g.url + "/logs?limit=1000")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var entries []struct{ Face, Server, Tool, Method string }
	if err := json.NewDecoder(res.Body).Decode(&entries); err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, e := range entries {
		if e.Face == "agentify" && !strings.HasSuffix(e.Method, "/list") {
			calls = append(calls, e.Method+" "+e.Server+" "+e.Tool)
		}
	}
	return calls
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}
