// Package conformance is the client that the official MCP conformance suite
// tests.
//
// The suite starts a program with the address of its server and the name of a
// scenario. [Run] runs the scenario with [mcpclient.Client] and [Logins] signs
// in with package oauth, so that the suite tests the code used for every
// upstream.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Options specify the scenario to run.
type Options struct {
	Scenario string
	URL      string
	Context  json.RawMessage // the suite's parameters of the scenario; may be empty

	// HTTP modifies the options of the connection, for the scenarios about
	// authorization. Nil changes nothing.
	HTTP func(*mcpclient.HTTPOptions)
}

// Run runs one scenario. It returns an error if the client could not complete
// it; the suite decides by the requests that it received.
func Run(ctx context.Context, o Options) error {
	s := &session{o: o}
	act, ok := scenarios[o.Scenario]
	switch {
	case ok:
	case strings.HasPrefix(o.Scenario, "auth/"):
		act = (*session).authorized
	default:
		return fmt.Errorf("scenario %q is not known", o.Scenario)
	}
	if err := s.connect(ctx); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer s.client.Close()
	return act(s, ctx)
}

var scenarios = map[string]func(*session, context.Context) error{
	mcp.MethodInitialize:                  (*session).listTools,
	"tools_call":                          (*session).addNumbers,
	"request-metadata":                    (*session).listTools,
	"elicitation-sep1034-client-defaults": (*session).elicit,
	"sse-retry":                           (*session).reconnect,
	"json-schema-ref-no-deref":            (*session).listTools,
	"json-schema-2020-12-preservation":    (*session).preserve,
	"sep-2322-client-request-state":       (*session).rounds,
	"http-standard-headers":               (*session).standardHeaders,
	"http-custom-headers":                 (*session).customHeaders,
	"http-invalid-tool-headers":           (*session).invalidHeaders,
}

// session is one connection of the client under test.
type session struct {
	o      Options
	client *mcpclient.Client

	mu    sync.Mutex
	tools map[string]json.RawMessage // definitions, by name
	order []string
}

func (s *session) connect(ctx context.Context) error {
	h := mcpclient.HTTPOptions{URL: s.o.URL}
	if s.o.HTTP != nil {
		s.o.HTTP(&h)
	}
	var err error
	s.client, err = mcpclient.Connect(ctx, mcpclient.NewHTTP(h), mcpclient.Options{
		Name:           "junctor-conformance",
		Version:        "1",
		Capabilities:   mcpclient.Capabilities{ElicitationForm: true, Sampling: true, Roots: true},
		OnNotification: func(string, json.RawMessage) {},
		// The suite starts dozens of clients concurrently, so that responses
		// are late.
		DiscoverTimeout: time.Minute,
		InputSchema: func(name string) json.RawMessage {
			s.mu.Lock()
			defer s.mu.Unlock()
			return rawjson.Field(s.tools[name], "inputSchema")
		},
	})
	return err
}

func (s *session) do(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	result, err := s.client.Do(ctx, tool.Request{Method: method, Params: params, Exchange: tool.Exchange{
		Notify:       func(string, json.RawMessage) {},
		Ask:          answer,
		Capabilities: json.RawMessage(`{"elicitation":{"form":{}},"sampling":{},"roots":{}}`),
	}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return result, nil
}

// answer simulates the user of the client: it accepts every form with its
// default values, and true for booleans without one.
func answer(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case mcp.MethodElicit:
		content := json.RawMessage(`{}`)
		for name, property := range rawjson.Members(rawjson.Field(params, "requestedSchema", "properties")) {
			if value := rawjson.Field(property, "default"); value != nil {
				content = rawjson.SetField(content, value, name)
			} else if rawjson.FieldString(property, "type") == "boolean" {
				content = rawjson.SetField(content, json.RawMessage(`true`), name)
			}
		}
		return rawjson.SetField(json.RawMessage(`{"action":"accept"}`), content, "content"), nil
	case mcp.MethodSample:
		return json.RawMessage(`{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"none","stopReason":"endTurn"}`), nil
	case mcp.MethodRootsList:
		return json.RawMessage(`{"roots":[]}`), nil
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
}

// listTools requests the list of tools and ignores those whose schema is not
// valid for HTTP.
func (s *session) listTools(ctx context.Context) error {
	result, err := s.do(ctx, mcp.MethodToolsList, nil)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = map[string]json.RawMessage{}
	for definition := range rawjson.Elements(rawjson.Field(result, "tools")) {
		if _, err := mcp.HeaderParams(rawjson.Field(definition, "inputSchema")); err != nil {
			continue
		}
		name := rawjson.FieldString(definition, "name")
		s.tools[name] = definition
		s.order = append(s.order, name)
	}
	return nil
}

// call calls a tool; nil means empty arguments.
func (s *session) call(ctx context.Context, name string, arguments json.RawMessage) error {
	if arguments == nil {
		arguments = json.RawMessage(`{}`)
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return err
	}
	params := rawjson.SetField(rawjson.SetField(nil, arguments, "arguments"), quoted, "name")
	_, err = s.do(ctx, mcp.MethodToolsCall, params)
	return err
}

// listed calls a tool that must be in the server's list.
func (s *session) listed(ctx context.Context, name string, arguments json.RawMessage) error {
	if err := s.listTools(ctx); err != nil {
		return err
	}
	if s.tools[name] == nil {
		return fmt.Errorf("tool %q is not offered", name)
	}
	return s.call(ctx, name, arguments)
}

func (s *session) addNumbers(ctx context.Context) error {
	return s.listed(ctx, "add_numbers", json.RawMessage(`{"a":5,"b":3}`))
}

func (s *session) elicit(ctx context.Context) error {
	return s.listed(ctx, "test_client_elicitation_defaults", nil)
}

func (s *session) reconnect(ctx context.Context) error {
	return s.listed(ctx, "test_reconnection", nil)
}

// preserve sends a schema back unchanged.
func (s *session) preserve(ctx context.Context) error {
	if err := s.listTools(ctx); err != nil {
		return err
	}
	schema := rawjson.Field(s.tools["json_schema_2020_12_tool"], "inputSchema")
	if schema == nil {
		return errors.New("tool json_schema_2020_12_tool is not offered")
	}
	return s.call(ctx, "json_schema_echo", rawjson.SetField(nil, schema, "schema"))
}

// rounds makes calls whose results require input. Some of them must fail.
func (s *session) rounds(ctx context.Context) error {
	for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
		if err := s.call(ctx, name, nil); err != nil && tool.KindOf(err) == tool.Canceled {
			return err
		}
	}
	return nil
}

// standardHeaders makes one request of each kind that has a name.
func (s *session) standardHeaders(ctx context.Context) error {
	if err := s.listTools(ctx); err != nil {
		return err
	}
	var errs []error
	if len(s.order) > 0 {
		errs = append(errs, s.call(ctx, s.order[0], nil))
	}
	for _, kind := range []struct{ list, items, key, get string }{
		{mcp.MethodResourcesList, "resources", "uri", mcp.MethodResourcesRead},
		{mcp.MethodPromptsList, "prompts", "name", mcp.MethodPromptsGet},
	} {
		result, err := s.do(ctx, kind.list, nil)
		errs = append(errs, err)
		for item := range rawjson.Elements(rawjson.Field(result, kind.items)) {
			_, err := s.do(ctx, kind.get, rawjson.SetField(nil, rawjson.Field(item, kind.key), kind.key))
			errs = append(errs, err)
			break
		}
	}
	return errors.Join(errs...)
}

// customHeaders makes the calls that are listed in the suite's context.
func (s *session) customHeaders(ctx context.Context) error {
	if err := s.listTools(ctx); err != nil {
		return err
	}
	var errs []error
	for wanted := range rawjson.Elements(rawjson.Field(s.o.Context, "toolCalls")) {
		errs = append(errs, s.call(ctx, rawjson.FieldString(wanted, "name"), rawjson.Field(wanted, "arguments")))
	}
	return errors.Join(errs...)
}

// invalidHeaders calls every tool that listTools did not ignore.
func (s *session) invalidHeaders(ctx context.Context) error {
	if err := s.listTools(ctx); err != nil {
		return err
	}
	var errs []error
	for _, name := range s.order {
		errs = append(errs, s.call(ctx, name, json.RawMessage(`{"region":"us-west1"}`)))
	}
	return errors.Join(errs...)
}

// authorized runs the scenarios about authorization, which all require a
// connection, a list and a call.
func (s *session) authorized(ctx context.Context) error {
	if err := s.listTools(ctx); err != nil {
		return err
	}
	return s.call(ctx, "test-tool", nil)
}
