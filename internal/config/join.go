package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"junctor/internal/llm"
	"junctor/internal/upstream"
)

// clientOptions is the file name in problems with options that a client sends.
const clientOptions = "initializationOptions"

// optional are the keys that a client may set; all others are reserved for the
// operator of the gateway.
var optional = slices.Concat(containers, apiKeys, []string{"logLevel", "log", "DEBUG_PORT", "debugPort", "llm", "toolRules", "builtin"})

// ParseOptions parses and validates the options that a client sends when it
// starts the gateway for itself. They have the format of the file, restricted
// to the keys that a client may set. An error is an *Error with every problem.
func ParseOptions(data []byte, o Options) (*Config, []Note, error) {
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, nil, &Error{[]Problem{{File: clientOptions, Msg: "must be an object, such as {\"backends\": […]}"}}}
	}
	var problems []Problem
	var top map[string]json.RawMessage
	if json.Unmarshal(data, &top) == nil { // otherwise Parse reports the problem
		for key, value := range top {
			_, ours := fieldsOf(reflect.TypeFor[Config]())[key]
			switch {
			case ours && !slices.Contains(optional, key):
				problems = append(problems, Problem{File: clientOptions, Key: key, Msg: "cannot be set by clients; set it in the configuration file"})
			case slices.Contains(apiKeys, key) && string(value) == `""`:
				problems = append(problems, Problem{File: clientOptions, Key: key, Msg: "is empty; leave it out when the environment has the key"})
			}
		}
	}
	cfg, notes, err := Parse(clientOptions, data, o)
	if e, ok := errors.AsType[*Error](err); ok {
		problems = append(problems, e.Problems...)
	} else if err != nil {
		return nil, notes, err
	}
	if len(problems) > 0 {
		return nil, notes, &Error{sorted(problems)}
	}
	return cfg, notes, nil
}

// Join returns the configuration merged with a client's options, as returned by
// [ParseOptions]. A server of the client replaces one with the same name. The
// client's models come first, its rules last. API keys in the environment or in
// the file take precedence over the client's.
func (c *Config) Join(options *Config) *Config {
	joined := *c
	joined.from = maps.Clone(c.from)
	if joined.from == nil {
		joined.from = map[string]*node{}
	}
	take := func(prefix string) {
		maps.DeleteFunc(joined.from, func(key string, _ *node) bool { return hasKeyPrefix(key, prefix) })
		for key, n := range options.from {
			if hasKeyPrefix(key, prefix) {
				theirs := *n
				theirs.offset = -1 // not a position in our file
				if theirs.source == "" {
					theirs.source = clientOptions
				}
				joined.from[key] = &theirs
			}
		}
	}
	joined.Servers = slices.DeleteFunc(slices.Clone(c.Servers), func(s upstream.Config) bool {
		_, replaced := options.Server(s.Name)
		return replaced
	})
	joined.Servers = append(joined.Servers, options.Servers...)
	for _, s := range options.Servers {
		take(joinKey("mcpServers", s.Name))
	}
	if len(options.LLM) > 0 {
		joined.LLM = slices.Clone(options.LLM)
		for _, m := range c.LLM {
			if !slices.ContainsFunc(options.LLM, func(o llm.Config) bool { return o.ID() == m.ID() }) {
				joined.LLM = append(joined.LLM, m)
			}
		}
		take("llm")
	}
	joined.ToolRules = slices.Concat(c.ToolRules, options.ToolRules)
	for _, set := range []struct {
		key  string
		copy func()
	}{
		{"log.level", func() { joined.Log.Level = options.Log.Level }},
		{"debugPort", func() { joined.DebugPort = options.DebugPort }},
		{"builtin", func() { joined.Builtin = options.Builtin }},
	} {
		if options.from[set.key] != nil {
			set.copy()
			take(set.key)
		}
	}
	joined.env = c.env.with(options.env)
	return &joined
}

// Sets reports whether a key such as log.level was set, by the file, the
// environment or the command line.
func (c *Config) Sets(key string) bool { return c.from[key] != nil }

func hasKeyPrefix(key, prefix string) bool {
	rest, ok := strings.CutPrefix(key, prefix)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// with returns the environment with the keys of a client's options at the lowest
// precedence and without the variables of the working folder. An empty variable
// of the real environment does not hide a key. It has the secrets of both.
func (e *environment) with(options *environment) *environment {
	out := &environment{inFile: map[string]string{}}
	if e != nil {
		out.dotenv, out.secrets = e.dotenv, slices.Clone(e.secrets)
		if real := e.real; real != nil {
			out.real = func(name string) (string, bool) {
				v, ok := real(name)
				return v, ok && v != ""
			}
		}
	}
	if options != nil {
		maps.Copy(out.inFile, options.inFile)
		out.secrets = append(out.secrets, options.secrets...)
	}
	if e != nil {
		maps.Copy(out.inFile, e.inFile)
	}
	return out
}
