package models_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/tool"
)

func user(text string) llm.Request {
	return llm.Request{Messages: []llm.Message{llm.Text(llm.User, text)}}
}

func noRetries(c *llm.Config) { c.MaxRetries = 0 }

func TestErrorsExplainWhatToDo(t *testing.T) {
	fail := func(f llmtest.Failure) llmtest.Script {
		return llmtest.Script{Default: &llmtest.Reply{Error: &f}}
	}
	cases := map[string]struct {
		script llmtest.Script
		reason llm.Reason
		kind   tool.Kind
		says   string
	}{
		"bad key":        {llmtest.Script{Key: "another"}, llm.BadKey, tool.UpstreamFailed, "apiKey"},
		"unknown model":  {llmtest.Script{Models: []string{"another"}}, llm.UnknownModel, tool.UpstreamFailed, "llm.model"},
		"quota":          {fail(llmtest.Failure{Status: 429, Code: "insufficient_quota", Message: "You exceeded your current quota"}), llm.Quota, tool.UpstreamFailed, "billing"},
		"busy":           {fail(llmtest.Failure{Status: 429, Message: "Too many requests per minute", RetryAfter: "7"}), llm.Busy, tool.RateLimited, "busy"},
		"broken":         {fail(llmtest.Failure{Status: 500}), llm.Broken, tool.UpstreamFailed, "HTTP 500"},
		"unavailable":    {fail(llmtest.Failure{Status: 503}), llm.Busy, tool.RateLimited, "busy"},
		"context length": {llmtest.Script{ContextWindow: 10}, llm.ContextLength, tool.TooLarge, "too long"},
		"bad request":    {fail(llmtest.Failure{Status: 400, Message: "no such thing, " + key}), llm.BadRequest, tool.UpstreamFailed, "no such thing"},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, tt.script, func(t *testing.T, v variant, s *llmtest.Server) {
				_, err := llm.Collect(v.model(t, s, noRetries).Stream(context.Background(), user("hello there")), nil)
				e, ok := errors.AsType[*llm.Error](err)
				if !ok {
					t.Fatalf("error %v", err)
				}
				if e.Reason != tt.reason || tool.KindOf(err) != tt.kind || !strings.Contains(tool.AsError(err).Msg, tt.says) {
					t.Errorf("reason %q, kind %q, message %q", e.Reason, tool.KindOf(err), tool.AsError(err).Msg)
				}
				if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), s.URL) {
					t.Errorf("error shows too much: %v", err)
				}
				if tt.script.Default != nil && tt.script.Default.Error.RetryAfter != "" && e.RetryAfter().Seconds() != 7 {
					t.Errorf("retry after %v", e.RetryAfter())
				}
			})
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		each(t, llmtest.Script{}, func(t *testing.T, v variant, s *llmtest.Server) {
			m := v.model(t, s, noRetries, func(c *llm.Config) { c.BaseURL = "http://127.0.0.1:1" })
			_, err := llm.Collect(m.Stream(context.Background(), user("hi")), nil)
			if llm.ReasonOf(err) != llm.Unreachable || tool.KindOf(err) != tool.Unavailable {
				t.Errorf("error %v", err)
			}
		})
	})
}

func TestRetriesBeforeTheFirstEventOnly(t *testing.T) {
	script := llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "later"}, Times: 2, Reply: llmtest.Reply{Error: &llmtest.Failure{Status: 429, RetryAfter: "0.01"}}},
		{When: llmtest.When{User: "never"}, Reply: llmtest.Reply{Error: &llmtest.Failure{Status: 503, RetryAfter: "0.01", Message: "per minute"}}},
		{When: llmtest.When{User: "cut"}, Reply: llmtest.Reply{Text: strings.Repeat("word ", 100), CutAfter: 6}},
		{When: llmtest.When{User: "overload"}, Reply: llmtest.Reply{Text: strings.Repeat("word ", 100), BreakAfter: 6}},
	}}
	each(t, script, func(t *testing.T, v variant, s *llmtest.Server) {
		m := v.model(t, s)
		if turn := ask(t, m, user("later")); !strings.HasPrefix(turn.Message.Text(), "You said") || len(s.Requests()) != 3 {
			t.Errorf("after %d requests: %q", len(s.Requests()), turn.Message.Text())
		}
		before := len(s.Requests())
		if _, err := llm.Collect(m.Stream(context.Background(), user("never")), nil); llm.ReasonOf(err) != llm.Busy {
			t.Errorf("never: %v", err)
		}
		if n := len(s.Requests()) - before; n != 4 {
			t.Errorf("%d requests, want 1 and 3 retries", n)
		}
		for _, what := range []string{"cut", "overload"} {
			before := len(s.Requests())
			turn, err := llm.Collect(m.Stream(context.Background(), user(what)), nil)
			if err == nil || !strings.HasPrefix(turn.Message.Text(), "word") || len(s.Requests()) != before+1 {
				t.Errorf("%s: %v after %d requests, said %q", what, err, len(s.Requests())-before, turn.Message.Text())
			}
			if e, ok := errors.AsType[*llm.Error](err); !ok || what == "cut" && e.Reason != llm.CutOff || what == "overload" && e.Reason != llm.Busy {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestSilentModelTimesOut(t *testing.T) {
	script := llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "from the start"}, Reply: llmtest.Reply{Text: "x", StallAfter: -1}},
		{When: llmtest.When{User: "in the middle"}, Reply: llmtest.Reply{Text: strings.Repeat("word ", 100), StallAfter: 6}},
		{When: llmtest.When{User: "before anything"}, Reply: llmtest.Reply{DelayMS: 600_000}},
	}}
	each(t, script, func(t *testing.T, v variant, s *llmtest.Server) {
		m := v.model(t, s, noRetries, func(c *llm.Config) { c.TimeoutMs = 2000 })
		var wg sync.WaitGroup
		for _, when := range []string{"from the start", "in the middle", "before anything"} {
			wg.Go(func() {
				turn, err := llm.Collect(m.Stream(context.Background(), user(when)), nil)
				if llm.ReasonOf(err) != llm.Silent || tool.KindOf(err) != tool.Timeout {
					t.Errorf("%s: %v", when, err)
				}
				// On a busy machine the timeout may expire before the first
				// word.
				for begun := time.Now(); when == "in the middle" && turn.Message.Text() == ""; {
					if time.Since(begun) > time.Minute {
						t.Error("what came before the silence is lost")
						return
					}
					turn, _ = llm.Collect(m.Stream(context.Background(), user(when)), nil)
				}
			})
		}
		wg.Wait()
	})
}

func TestCancellationKeepsPartialReply(t *testing.T) {
	script := llmtest.Script{Default: &llmtest.Reply{Text: strings.Repeat("word ", 100), StallAfter: 6}}
	each(t, script, func(t *testing.T, v variant, s *llmtest.Server) {
		m := v.model(t, s)
		ctx, cancel := context.WithCancel(context.Background())
		turn, err := llm.Collect(m.Stream(ctx, user("go")), func(ev llm.Event) { cancel() })
		if llm.ReasonOf(err) != llm.Stopped || tool.KindOf(err) != tool.Canceled || turn.Message.Text() == "" {
			t.Errorf("cancelled: %v, said %q", err, turn.Message.Text())
		}
		for range m.Stream(context.Background(), user("go")) {
			break // must return without reading the rest
		}
		done, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := llm.Collect(m.Stream(done, user("go")), nil); llm.ReasonOf(err) != llm.Stopped {
			t.Errorf("cancelled before: %v", err)
		}
	})
}

func TestOverlongReplyIsTruncated(t *testing.T) {
	script := llmtest.Script{Chunk: 1 << 16, Default: &llmtest.Reply{Text: strings.Repeat("x", 1<<16), Repeat: 2 * llm.MaxReply >> 16}}
	each(t, script, func(t *testing.T, v variant, s *llmtest.Server) {
		if v.cfg.Provider != llm.OpenAI && v.api == llmtest.Chat || v.cfg.Model == "gemini-2.5-test" {
			t.Skip("the same code as another variant, and many megabytes")
		}
		turn, err := llm.Collect(v.model(t, s).Stream(context.Background(), user("go")), nil)
		if llm.ReasonOf(err) != llm.TooLong || len(turn.Message.Text()) > llm.MaxReply+1<<17 {
			t.Errorf("%v after %d bytes", err, len(turn.Message.Text()))
		}
	})
}

func TestUnsupportedParametersAreDropped(t *testing.T) {
	temperature := 0.5
	for _, v := range variants() {
		if v.api != llmtest.Chat && v.api != llmtest.Responses {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			s := llmtest.Start(t, llmtest.Script{Reject: []string{"stream_options", "temperature", "parallel_tool_calls", "max_tokens", "include", "store"}})
			m := v.model(t, s, func(c *llm.Config) { c.Temperature = &temperature; c.MaxTokens = 100 })
			req := user("hi")
			req.Tools, req.Single = tools(t), true
			ask(t, m, req)
			before := len(s.Requests())
			ask(t, m, req)
			if n := len(s.Requests()) - before; n != 1 {
				t.Errorf("asked %d times though it is known what the server refuses", n)
			}
		})
	}
}
