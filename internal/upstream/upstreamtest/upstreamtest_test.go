package upstreamtest

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

func connect(t *testing.T, transport mcpclient.Transport) *mcpclient.Client {
	t.Helper()
	c, err := mcpclient.Connect(t.Context(), transport, mcpclient.Options{DiscoverTimeout: time.Hour, Capabilities: mcpclient.Capabilities{Sampling: true, ElicitationForm: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func stdio(t *testing.T, script Script) mcpclient.Transport {
	t.Helper()
	cfg := Stdio(t, "x", script)
	cmd := exec.Command(cfg.Command, cfg.Args...)
	for k, v := range cfg.Env {
		cmd.Env = append(cmd.Env, k+"="+v.Reveal())
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return mcpclient.OverLink(mcp.NewStream(out, in, mcp.StreamOptions{}))
}

// Every tool behaves as documented by Tools, on every transport and in both
// eras.
func TestScriptedTools(t *testing.T) {
	for _, era := range []Script{{}, {OldEra: true}} {
		pipe, err := New(era).Transport(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, transport := range map[string]mcpclient.Transport{
			"pipe": pipe, "stdio": stdio(t, era), "http": mcpclient.NewHTTP(mcpclient.HTTPOptions{URL: Listen(t, era).URL}),
		} {
			t.Run(name, func(t *testing.T) {
				c := connect(t, transport)
				if got := c.Info().Stateless(); got == era.OldEra {
					t.Errorf("stateless: %v, with OldEra %v", got, era.OldEra)
				}
				var progress int
				ex := tool.Exchange{
					Notify: func(string, json.RawMessage) { progress++ },
					Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
						return json.RawMessage(`{"action":"accept"}`), nil
					},
					Capabilities: json.RawMessage(`{"elicitation":{},"sampling":{}}`),
				}
				call := func(name, arguments string) (string, error) {
					raw, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Exchange: ex,
						Params: json.RawMessage(`{"name":"` + name + `","arguments":` + arguments + `,"_meta":{"progressToken":1}}`)})
					return TextOf(raw), err
				}
				for tool, want := range map[string]string{
					"echo": "{", "whoami": "", "fail": "it failed", "progress": "done", "ask": "accept", "sample": "accept",
					"huge": "xxx", "change": "done", "environ": "/", "headers": "", "extra1": "extra1",
				} {
					got, err := call(tool, `{"n":3,"bytes":3}`)
					if err != nil || !strings.Contains(got, want) {
						t.Errorf("%s answered %q, %v; want %q", tool, got, err, want)
					}
				}
				if progress < 3 {
					t.Errorf("%d notifications", progress)
				}
				for _, tool := range []string{"refuse", "nosuch", "die"} {
					if got, err := call(tool, `{}`); err == nil {
						t.Errorf("%s answered %q, want an error", tool, got)
					}
				}
			})
		}
	}
}

func TestListsAndGuidance(t *testing.T) {
	s := New(Script{PageSize: 5, Guidance: "g", Stray: nil})
	transport, err := s.Transport(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, transport)
	var names []string
	for cursor := ""; ; {
		raw, err := c.Do(t.Context(), tool.Request{Method: "tools/list", Params: json.RawMessage(`{"cursor":"` + cursor + `"}`)})
		if err != nil {
			t.Fatal(err)
		}
		for d := range rawjson.Elements(rawjson.Field(raw, "tools")) {
			names = append(names, rawjson.FieldString(d, "name"))
		}
		if cursor = rawjson.FieldString(raw, "nextCursor"); cursor == "" {
			break
		}
	}
	if len(names) != len(Tools()) || !slices.Contains(names, "echo") {
		t.Errorf("listed %q", names)
	}
	for method, params := range map[string]string{"prompts/list": `{}`, "prompts/get": `{"name":"tool-descriptions"}`} {
		if _, err := c.Do(t.Context(), tool.Request{Method: method, Params: json.RawMessage(params)}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	if _, err := c.Do(t.Context(), tool.Request{Method: "prompts/get", Params: json.RawMessage(`{"name":"other"}`)}); err == nil {
		t.Error("an unknown prompt was answered")
	}
	if s.Connections() == 0 || s.Calls() != 0 || !slices.Contains(s.Seen(), "tools/list") {
		t.Errorf("%d connections, %d calls, seen %q", s.Connections(), s.Calls(), s.Seen())
	}
	s.Notify("notifications/message", json.RawMessage(`{}`))
}

func TestFaultsOverHTTP(t *testing.T) {
	h := Listen(t, Script{})
	fault := HTML
	h.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		if fault != nil {
			fault(w)
		}
		return fault != nil
	}
	dial := func() error {
		c, err := mcpclient.Connect(t.Context(), mcpclient.NewHTTP(mcpclient.HTTPOptions{URL: h.Config("x").URL}), mcpclient.Options{DiscoverTimeout: time.Hour})
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := dial(); err == nil || !strings.Contains(err.Error(), "web page") {
		t.Errorf("HTML: %v", err)
	}
	fault = Drop
	if err := dial(); err == nil {
		t.Error("a dropped stream is no error")
	}
	fault = nil
	h.Forget()
	if err := dial(); err != nil {
		t.Error(err)
	}
	h.Stop()
	if err := dial(); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("stopped: %v", err)
	}
	h.Start()
	if err := dial(); err != nil {
		t.Error(err)
	}
}
