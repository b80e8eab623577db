package app

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"junctor/internal/agentify"
	"junctor/internal/approval"
	"junctor/internal/audit"
	"junctor/internal/auth"
	"junctor/internal/authserver"
	"junctor/internal/broker"
	"junctor/internal/catalog"
	"junctor/internal/chat/wire"
	"junctor/internal/control"
	"junctor/internal/mcptrace"
	"junctor/internal/oauth"
	"junctor/internal/profile"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/upstream/upstreamtest"
	"junctor/internal/waiting"
)

var update = flag.Bool("update", false, "rewrite the generated part of openapi.json")

const openAPIFile = "../toolsapi/openapi.json"

// operation describes a route. body, response and stream are values of the
// documented types; stream is one element of a response to a client that
// accepts events or JSON lines. Without response and stream there is no
// content, or status.
type operation struct {
	id, summary            string
	query                  string // names of queryParameters
	body, response, stream any
	status                 int
}

// object returns a struct with one field, for a request or a response.
func object[T any](field string) any {
	return reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Field", Type: reflect.TypeFor[T](), Tag: reflect.StructTag(`json:"` + field + `"`)}})).Elem().Interface()
}

var (
	done   = object[bool]("ok")
	rawMCP = json.RawMessage{} // passed on from an MCP server
)

// operations describe the routes below /api/.
var operations = map[string]operation{
	"GET /api/status":                   {id: "getStatus", summary: "Get the state of the gateway and its servers", response: Status{}},
	"GET /api/events":                   {id: "followState", summary: "Stream the state of the servers, with the catalogue's version and the conversations that wait, after each change", stream: control.LiveState{}},
	"GET /api/tools":                    {id: "findTools", summary: "List or search the tools that the caller may see", query: "server tag state query explain limit offset wait waitFor", response: control.ToolList{}},
	"GET /api/tools/{server}/{tool...}": {id: "getTool", summary: "Get a tool with its schemas; use - as the server to look in all servers", query: "wait", response: control.ToolDetails{}},
	"PATCH /api/tools/{server}/{tool...}": {id: "changeTool", summary: "Enable or disable a tool, or set whether its calls require approval", response: done, body: struct {
		Enabled  *bool             `json:"enabled,omitempty"`
		Approval *catalog.Approval `json:"approval,omitempty"`
	}{}},
	"POST /api/call":   {id: "runTool", summary: "Run a tool", body: control.CallRequest{}, response: control.CallAnswer{}, stream: control.CallAnswer{}},
	"GET /api/servers": {id: "listServers", summary: "List the MCP servers", query: "wait", response: object[[]control.Server]("servers")},
	"POST /api/servers": {id: "addServers", summary: "Add servers from the JSON configuration of any MCP client", response: object[[]string]("added"), body: struct {
		Servers json.RawMessage `json:"servers"`
		Replace bool            `json:"replace,omitempty"`
	}{}},
	"GET /api/servers/{name}":          {id: "getServer", summary: "Get an MCP server", response: control.Server{}},
	"GET /api/servers/{name}/config":   {id: "getServerConfig", summary: "Get a server's entry in the configuration file, with placeholders for secrets", response: object[json.RawMessage]("server")},
	"PUT /api/servers/{name}":          {id: "setServer", summary: "Replace a server's entry in the configuration file", body: object[json.RawMessage]("server"), response: done},
	"PATCH /api/servers/{name}":        {id: "changeServer", summary: "Enable or disable a server", body: object[bool]("enabled"), response: done},
	"DELETE /api/servers/{name}":       {id: "removeServer", summary: "Remove a server from the configuration", response: done},
	"POST /api/servers/{name}/restart": {id: "restartServer", summary: "Restart a server", response: done},
	"POST /api/servers/{name}/request": {id: "requestServer", summary: "Send a server an MCP request other than a tool call", response: object[json.RawMessage]("result"), body: struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
	}{}},
	"POST /api/servers/{name}/approve": {id: "approveDefinitions", summary: "Approve changed tool definitions of a server: all, or those with the given fingerprints", response: object[[]string]("approved"), body: struct {
		Tools map[string]string `json:"tools,omitempty"`
	}{}},
	"GET /api/changes": {id: "listChanges", summary: "List the tools whose definition has changed since it was approved", query: "server wait", response: object[[]control.Change]("changes")},
	"GET /api/import": {id: "findImports", summary: "List the MCP servers that other programs on this machine have configured", response: struct {
		Candidates []control.Candidate `json:"candidates"`
		Problems   []string            `json:"problems"`
	}{}},
	"POST /api/import": {id: "importServers", summary: "Import servers from other programs", body: object[[]string]("names"), response: object[[]string]("added")},
	"GET /api/calls": {id: "listCalls", summary: "List the newest records of the call log without arguments and results, or stream new ones", query: "server tool api caller session status parent text after before limit from to", stream: store.Call{}, response: struct {
		Calls []store.Call `json:"calls"`
		Last  int64        `json:"last"`
	}{}},
	"GET /api/waiting":    {id: "listWaitingCalls", summary: "List the caller's waiting calls and those that have ended, newest first, without results", response: object[[]waiting.Record]("calls")},
	"GET /api/calls/{id}": {id: "getCall", summary: "Get a record of the call log or a waiting call", query: "wait after", response: []any{store.Call{}, waiting.Record{}}},
	"POST /api/calls/{id}": {id: "answerCall", summary: "Answer a question of a waiting call", response: waiting.Record{}, body: struct {
		Input  string          `json:"input,omitempty"`
		Answer json.RawMessage `json:"answer"`
	}{}},
	"DELETE /api/calls/{id}":      {id: "cancelCall", summary: "Cancel a waiting call", response: waiting.Record{}},
	"GET /api/export":             {id: "exportCalls", summary: "Export all matching records of the call log, oldest first, with arguments and results", query: "server tool api caller session status parent text from to", stream: store.Call{}},
	"GET /api/stats":              {id: "getCallStats", summary: "Get the number and the durations of calls by server, tool, caller and API", query: "server tool api caller session status parent text from to intervals", response: store.CallStats{}},
	"GET /api/config":             {id: "getConfig", summary: "Get the configuration, with secrets masked", response: control.Configuration{}},
	"GET /api/config/schema":      {id: "getConfigSchema", summary: "Get the JSON Schema of the configuration file", response: map[string]any{}},
	"PATCH /api/config":           {id: "changeConfig", summary: "Change settings by key; null removes a setting", body: object[map[string]any]("set"), response: control.Configuration{}},
	"GET /api/profiles":           {id: "listProfiles", summary: "List the profiles that the caller may use", query: "wait", response: object[[]control.Profile]("profiles")},
	"GET /api/profiles/{name}":    {id: "getProfile", summary: "Get a profile and its tools", query: "wait", response: control.Profile{}},
	"POST /api/profiles/preview":  {id: "previewProfile", summary: "Preview what a profile with this configuration would show, without saving it", body: profile.Config{}, response: control.Profile{}},
	"PUT /api/profiles/{name}":    {id: "setProfile", summary: "Create or replace a profile", body: profile.Config{}, response: done},
	"DELETE /api/profiles/{name}": {id: "removeProfile", summary: "Remove a profile", response: done},
	"GET /api/keys":               {id: "listKeys", summary: "List the API keys, including revoked ones", response: object[[]store.Key]("keys")},
	"POST /api/keys": {id: "addKey", summary: "Create an API key, which is shown only once", body: control.NewKey{}, response: struct {
		Key    string    `json:"key"`
		Record store.Key `json:"record"`
	}{}},
	"DELETE /api/keys/{name}": {id: "revokeKey", summary: "Revoke an API key by name or id", response: store.Key{}},
	"GET /api/audit":          {id: "listAudit", summary: "List the entries of the audit log, newest first", query: "before limit actor action", response: object[[]audit.Entry]("entries")},
	"GET /api/approvals": {id: "listApprovals", summary: "List the caller's standing approvals and the calls that wait for approval (for administrators: those of all callers)", response: struct {
		Approvals []approval.Info  `json:"approvals"`
		Waiting   []waiting.Record `json:"waiting"`
	}{}},
	"GET /api/approvals/events": {id: "followApprovals", summary: "Stream the list of calls that wait for approval after each change", stream: object[[]waiting.Record]("waiting")},
	"POST /api/approvals/{id}": {id: "decideCall", summary: "Allow or deny a call that waits for approval", response: waiting.Record{}, body: struct {
		Action string         `json:"action"`
		Scope  approval.Scope `json:"scope,omitempty"`
		Reason string         `json:"reason,omitempty"`
	}{}},
	"DELETE /api/approvals/{tool...}": {id: "revokeApproval", summary: "Revoke a standing approval"},

	"GET /api/models": {id: "listModels", summary: "List the models of the chat", response: struct {
		Models  []wire.ModelInfo `json:"models"`
		Message string           `json:"message,omitempty"`
	}{}},
	"GET /api/sessions":                {id: "listChats", summary: "List or search the caller's conversations, most recently changed first", query: "q before limit", response: object[[]wire.SessionInfo]("sessions")},
	"GET /api/sessions/{id}":           {id: "getChat", summary: "Get a conversation with its messages", response: conversation{}},
	"PATCH /api/sessions/{id}":         {id: "changeChat", summary: "Rename or pin a conversation, or change its model", body: wire.SessionChange{}, response: wire.SessionInfo{}},
	"DELETE /api/sessions/{id}":        {id: "deleteChat", summary: "Delete a conversation"},
	"GET /api/sessions/{id}/export":    {id: "exportChat", summary: "Export a conversation as Markdown or JSON", query: "format", response: conversation{}},
	"POST /api/sessions/{id}/title":    {id: "titleChat", summary: "Have the model choose a conversation's title", response: wire.SessionInfo{}},
	"POST /api/orchestrate":            {id: "orchestrate", summary: "Carry out a task described in plain language", body: agentify.Task{}, response: agentify.Answer{}, stream: json.RawMessage{}},
	"GET /api/backends":                {id: "listBackends", summary: "List the MCP servers for the debug interface", response: []agentify.Backend{}},
	"GET /api/logs":                    {id: "listGatewayLog", summary: "List the newest lines of the gateway's log", query: "limit level", response: []telemetry.LogEntry{}},
	"GET /api/mcptrace":                {id: "listTrace", summary: "List the newest messages between the gateway and its servers", query: "limit backend", response: []mcptrace.Entry{}},
	"POST /api/mcp/{name}/proxy":       {id: "proxy", summary: "Forward a JSON-RPC request to a server", body: rawMCP, response: rawMCP, stream: rawMCP},
	"GET /api/mcp/{name}/proxy/status": {id: "getProxyStatus", summary: "Get the state of a proxied server", response: broker.ProxyStatus{}},
	"GET /api/connections":             {id: "listConnections", summary: "List the servers with their proxy endpoints", response: object[[]broker.Connection]("connections")},

	"GET /api/session": {id: "getSession", summary: "Get information about the caller", response: auth.CallerInfo{}},
	"POST /api/session": {id: "signIn", summary: "Exchange an API key, the token of junctor serve or the ticket of a sign-in for a session", response: auth.CallerInfo{}, body: struct {
		Key    string `json:"key,omitempty"`
		Token  string `json:"token,omitempty"`
		SignIn string `json:"signin,omitempty"`
	}{}},
	"DELETE /api/session": {id: "signOut", summary: "End the session of the request"},
	"POST /api/session/ticket": {id: "newTicket", summary: "Create a ticket for opening one WebSocket", response: struct {
		Ticket  string `json:"ticket"`
		Expires int    `json:"expiresInSeconds"`
	}{}},
	"GET /api/oidc/start":            {id: "startSignIn", summary: "Start a sign-in at the OpenID provider", status: 302},
	"GET /api/oidc/callback":         {id: "endSignIn", summary: "Complete a sign-in at the OpenID provider", status: 302},
	"GET /api/page-sessions":         {id: "listSessions", summary: "List the sessions that the caller may end", response: object[[]auth.SessionInfo]("sessions")},
	"DELETE /api/page-sessions/{id}": {id: "endSession", summary: "End a session"},
	"GET /api/clients":               {id: "listClients", summary: "List the programs that may act for the caller (for administrators: for any caller)", response: object[[]authserver.Grant]("clients")},
	"DELETE /api/clients/{id}":       {id: "revokeClient", summary: "Revoke the consent given to a program"},
	"POST /api/mcp/{name}/authorize": {id: "authorizeServer", summary: "Start a sign-in to a server", response: struct {
		URL        string `json:"url,omitempty"`
		Authorized bool   `json:"authorized"`
	}{}},
	"DELETE /api/mcp/{name}/authorize": {id: "unauthorizeServer", summary: "Sign out of a server", query: "caller"},
	"GET /api/mcp/{name}/logins":       {id: "listLogins", summary: "List the callers that have their own login to a server", response: object[[]oauth.CallerLogin]("logins")},
}

// conversation is a session of the chat with its messages.
type conversation struct {
	wire.SessionInfo
	Messages []wire.HistoryMessage `json:"messages"`
}

// alsoDescribed are types that other schemas leave open: the params of a call
// that waits for approval.
var alsoDescribed = []any{approval.Request{}}

var queryParameters = map[string]string{
	"action":    "Return only entries with this action, such as key.add, or with any action on this object, such as key.",
	"actor":     "Return only actions of this caller, by id or name.",
	"after":     "Return only records after this seq. For a waiting call, with wait: wait until its version differs from this one. Default: its current version.",
	"api":       "Return only calls through this API, such as chat or tools.",
	"backend":   "Return only messages of this server.",
	"before":    "Return only items before this one: the seq of a call, the id of an audit entry, or the time of a conversation's last change in RFC 3339.",
	"caller":    "Return only calls of the caller with this id. When signing out of a server: the id of the caller whose login to end. Default: the caller itself.",
	"explain":   "If present, include the parts of each tool's score. Only with query.",
	"format":    "The format: md or json. Default: md.",
	"from":      "Return only calls at or after this time, in ISO 8601.",
	"intervals": "Also return statistics for each of this number of equal intervals of the time range, 1 to 1000. Requires from; to defaults to now.",
	"level":     "Return only lines of at least this level: trace, debug, info, warn, error or fatal.",
	"limit":     "The maximum number of items. Default: 100; 10000 for tools without query; 50 for conversations with q, which is also the limit there.",
	"offset":    "The number of tools to skip. Ignored with query.",
	"parent":    "Return only calls made by the call with this id.",
	"q":         "Return only conversations that contain this text. before is then ignored.",
	"query":     "What the tools should do, in any words. The best matches come first.",
	"server":    "Return only items of this server.",
	"session":   "Return only calls of this session.",
	"state":     "Return only tools in this state: enabled, disabled, changed (since the definition was approved), flagged (with warnings) or app (with a user interface for results).",
	"status":    "Return only calls with this status: ok, error (the tool ran and reported a failure), failed (the call did not complete) or notok (error or failed).",
	"tag":       "Return only tools with this tag. For several tags, any of which may match, repeat the parameter.",
	"text":      "Return only calls with this text in their arguments, result, error, names or ids. ASCII letters match in either case.",
	"to":        "Return only calls before this time, in ISO 8601.",
	"tool":      "Return only calls of this tool.",
	"wait":      "If present, wait for servers that are starting. For tools, only servers whose tools are unknown count, unless the value is fresh. For a waiting call: the time to wait for a change, in milliseconds, at most 60000.",
	"waitFor":   "With wait: the server to wait for, instead of all. For several servers, repeat the parameter.",
}

// TestOpenAPIDescribesEveryRoute checks the part of openapi.json about /api/*:
// each route has an operation, and the schemas match the Go types. TestMain
// checks that the responses in all tests of this package match.
func TestOpenAPIDescribesEveryRoute(t *testing.T) {
	for route := range access {
		if strings.Contains(route, " /api/") && operations[route].id == "" {
			t.Errorf("%s is not described; add it to operations", route)
		}
	}
	ids := map[string]string{}
	for route, op := range operations {
		if access[route] == "" && !strings.HasPrefix(route, "GET /api/oidc/") {
			t.Errorf("%s is described and no route", route)
		}
		if other := ids[op.id]; other != "" {
			t.Errorf("%s and %s have the id %s", route, other, op.id)
		}
		ids[op.id] = route
	}
	old, err := os.ReadFile(openAPIFile)
	if err != nil {
		t.Fatal(err)
	}
	want := generateOpenAPI(t, string(old))
	if *update {
		if err := os.WriteFile(openAPIFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !reflect.DeepEqual(withoutDescriptions(t, want), withoutDescriptions(t, string(old))) {
		t.Error("internal/toolsapi/openapi.json is not what the types are; run go test ./internal/app -run TestOpenAPI -update")
	}
}

// withoutDescriptions returns a document without descriptions. They are taken
// from the comments of the source, but only updated together with other
// changes.
func withoutDescriptions(t *testing.T, document string) any {
	var doc any
	if err := json.Unmarshal([]byte(document), &doc); err != nil {
		t.Fatal(err)
	}
	var remove func(v any)
	remove = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if _, ok := v["description"].(string); ok {
				delete(v, "description")
			}
			for _, part := range v {
				remove(part)
			}
		case []any:
			for _, part := range v {
				remove(part)
			}
		}
	}
	remove(doc)
	return doc
}

// Generated paths and components take one line each. Those of the tools API
// are written by hand and take several.
var generatedLine = regexp.MustCompile(`(?m)^    (  )?"(/api/[^"]*|[A-Z]\w*)": \{.*\},\n`)

func generateOpenAPI(t *testing.T, old string) string {
	m := newSchemaMaker(t)
	paths := map[string]map[string]any{}
	for route, op := range operations {
		method, path, _ := strings.Cut(route, " ")
		path = strings.ReplaceAll(path, "...}", "}")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(method)] = m.operation(path, op, access[route])
	}
	for _, v := range alsoDescribed {
		m.schema(reflect.TypeOf(v))
	}
	text := generatedLine.ReplaceAllString(old, "")
	text = strings.Replace(text, "  \"paths\": {\n", "  \"paths\": {\n"+lines(t, "    ", paths), 1)
	for name := range m.components {
		if strings.Contains(text, "      \""+name+"\": {\n") {
			t.Errorf("the tools API has a component %s, too; give the type a name in schemaNames", name)
		}
	}
	return strings.Replace(text, "    \"schemas\": {\n", "    \"schemas\": {\n"+lines(t, "      ", m.components), 1)
}

func lines[V any](t *testing.T, indent string, m map[string]V) string {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s%q: ", indent, name)
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(m[name]); err != nil {
			t.Fatal(err)
		}
		b.Truncate(b.Len() - 1)
		b.WriteString(",\n")
	}
	return b.String()
}

func (m *schemaMaker) operation(path string, op operation, needs need) map[string]any {
	out := map[string]any{"operationId": op.id, "summary": op.summary, "tags": []string{strings.Split(path, "/")[2]}}
	if needs != "" && needs != anyCaller && needs != notHere && needs != public {
		out["description"] = "Requires " + string(needs) + "."
	}
	var parameters []any
	for _, part := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
		parameters = append(parameters, map[string]any{"name": part[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
	}
	for _, name := range strings.Fields(op.query) {
		if queryParameters[name] == "" {
			m.t.Errorf("%s: the query parameter %s is not in queryParameters", op.id, name)
		}
		parameters = append(parameters, map[string]any{"name": name, "in": "query", "description": queryParameters[name], "schema": map[string]any{"type": "string"}})
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if op.body != nil {
		out["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/json": m.media(op.body)}}
	}
	content := map[string]any{}
	if op.response != nil {
		content["application/json"] = m.media(op.response)
	}
	if op.stream != nil {
		for _, format := range []string{"application/x-ndjson", "text/event-stream"} {
			content[format] = m.media(op.stream)
		}
	}
	status, response := "200", map[string]any{"description": "The request succeeded.", "content": content}
	if len(content) == 0 {
		status = "204"
		if op.status != 0 {
			status = fmt.Sprint(op.status)
		}
		delete(response, "content")
	}
	failure := map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Error"}}}
	out["responses"] = map[string]any{status: response, "default": map[string]any{"description": "The request was refused or failed; message describes the error.", "content": failure}}
	return out
}

// media returns the schema of a value's type, or of one of several types.
func (m *schemaMaker) media(v any) map[string]any {
	if several, ok := v.([]any); ok {
		var schemas []any
		for _, v := range several {
			schemas = append(schemas, m.schema(reflect.TypeOf(v)))
		}
		return map[string]any{"schema": map[string]any{"anyOf": schemas}}
	}
	return map[string]any{"schema": m.schema(reflect.TypeOf(v))}
}

// TestRequestsOfPage sends the requests of the page that no other test in this
// package sends; TestMain checks the responses.
func TestRequestsOfPage(t *testing.T) {
	up := upstreamtest.Listen(t, upstreamtest.Script{})
	g := start(t, fmt.Sprintf(`{"builtin":false,"mcpServers":{"up":{"url":%q,"startTimeoutMs":60000}}}`, up.URL), t.TempDir())
	_, list := g.ask("GET", "/api/tools?server=up&wait", "")
	var found control.ToolList
	if err := json.Unmarshal([]byte(list), &found); err != nil || len(found.Tools) == 0 {
		t.Fatalf("%v in %s", err, list)
	}
	for request, body := range map[string]string{
		"PATCH /api/tools/up/" + found.Tools[0].Tool: `{"approval":"ask"}`,
		"POST /api/servers/up/request":               `{"method":"ping"}`,
		"POST /api/servers/up/approve":               `{}`,
	} {
		method, path, _ := strings.Cut(request, " ")
		if status, answer := g.ask(method, path, body); status != 200 {
			t.Errorf("%s: %d %s", request, status, answer)
		}
	}
}
