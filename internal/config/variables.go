package config

import (
	"cmp"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"strings"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// variable returns a variable that is set and not empty, as a node with its
// source.
func (l *loader) variable(name string) (*node, bool) {
	v, from, ok := l.env.lookup(name)
	if !ok || v == "" {
		return nil, false
	}
	return &node{kind: str, path: name, offset: -1, keyAt: -1, text: "${" + name + "}", value: strings.TrimSpace(v), source: describe(name, from)}, true
}

// useVariable records that a server depends on a variable that is set.
func (l *loader) useVariable(name string) {
	v, from, _ := l.env.lookup(name)
	l.env.use(name, v, from)
}

// serverDefaults returns the defaults of upstreams, with the timeout overridden
// by DEFAULT_TOOL_TIMEOUT_MS.
func (l *loader) serverDefaults(d *decoder) upstream.Config {
	base := upstream.DefaultConfig()
	if n, ok := l.variable("DEFAULT_TOOL_TIMEOUT_MS"); ok {
		ms, err := strconv.Atoi(n.value)
		if err != nil || ms < 1 || setting.Millis(ms) > setting.MaxMillis {
			l.report(n, fmt.Sprintf("%q must be a whole number of milliseconds", n.value))
			return base
		}
		base.TimeoutMs = setting.Millis(ms)
		base.MaxTimeoutMs = max(base.MaxTimeoutMs, base.TimeoutMs)
		d.from["DEFAULT_TOOL_TIMEOUT_MS"] = n
	}
	return base
}

// serverFromEnvironment adds the server defined by MCP_SERVER_DIST,
// MCP_BASE_PATH and MCP_LOG_PATH.
func (l *loader) serverFromEnvironment(cfg *Config, d *decoder, base upstream.Config) {
	const name = "default"
	dist, ok := l.variable("MCP_SERVER_DIST")
	if !ok {
		return
	}
	if _, taken := cfg.Server(name); taken {
		l.note("MCP_SERVER_DIST", dist, `the file has a server named "default", which is used instead`)
		return
	}
	l.useVariable("MCP_SERVER_DIST")
	c := base
	c.Name, c.Transport, c.Command, c.Args = name, upstream.Stdio, "node", []string{dist.value}
	key := "mcpServers." + name
	d.from[key] = dist
	for _, v := range []struct{ from, to string }{{"MCP_BASE_PATH", "MCP_BASE_PATH"}, {"MCP_LOG_PATH", "MCP_CALL_LOG"}} {
		if n, ok := l.variable(v.from); ok {
			if c.Env == nil {
				c.Env = map[string]telemetry.Secret{}
			}
			c.Env[v.to] = telemetry.Secret(n.value)
			l.useVariable(v.from)
			d.from[key+".env."+v.to] = n
		}
	}
	cfg.Servers = append(cfg.Servers, c)
}

// override overrides settings of the file by the environment, and both by the
// command line.
func (l *loader) override(cfg *Config, d *decoder) {
	if n, ok := l.variable("PORT"); ok {
		host, _, err := net.SplitHostPort(cfg.Listen)
		if err != nil {
			host = "127.0.0.1"
		}
		if port, perr := strconv.Atoi(n.value); perr != nil || port < 0 || port > 65535 {
			l.report(n, fmt.Sprintf("%q is not a port", n.value))
		} else {
			cfg.Listen = net.JoinHostPort(host, strconv.Itoa(port))
			d.from["listen"] = n
		}
	}
	for _, v := range []struct{ name, key string }{
		{"LOG_LEVEL", "log.level"}, {"MAX_TOKEN_COUNT", "chat.maxTokenCount"}, {"DEBUG_PORT", "debugPort"},
	} {
		if n, ok := l.variable(v.name); ok {
			l.set(cfg, d, v.key, n)
		}
	}
	if cfg.Telemetry.OTLP == nil {
		l.traceEndpoint(cfg, d)
	}
	for _, o := range l.o.Overrides {
		l.set(cfg, d, o.Key, &node{kind: str, path: o.Source, offset: -1, keyAt: -1, text: "", value: o.Value, source: o.Source})
	}
}

// traceEndpoint sets the endpoint for traces from the variables of
// OpenTelemetry. They are for all programs of the machine, so one that does not
// fit is not an error.
func (l *loader) traceEndpoint(cfg *Config, d *decoder) {
	value := func(name string) string {
		if n, ok := l.variable(name); ok {
			return strings.ToLower(n.value)
		}
		return ""
	}
	const variable = "OTEL_EXPORTER_OTLP_ENDPOINT"
	n, ok := l.variable(variable)
	if !ok || value("OTEL_SDK_DISABLED") == "true" || value("OTEL_TRACES_EXPORTER") == "none" {
		return
	}
	t := telemetry.Config{OTLP: &telemetry.OTLPConfig{Endpoint: strings.TrimRight(n.value, "/") + "/v1/traces"}}
	switch protocol := cmp.Or(value("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), value("OTEL_EXPORTER_OTLP_PROTOCOL")); {
	case protocol == "grpc":
		l.note(variable, n, "is not used, because it is for gRPC; set telemetry.otlp.endpoint to the address of the collector for HTTP to send traces")
	case t.Validate() != nil:
		l.note(variable, n, "is not used, because it is not an http or https address; set telemetry.otlp.endpoint to send traces")
	default:
		cfg.Telemetry.OTLP = t.OTLP
		d.from["telemetry.otlp.endpoint"] = n
	}
}

// set sets the setting with a key such as log.level to the text of n.
func (l *loader) set(cfg *Config, d *decoder, key string, n *node) {
	v := reflect.ValueOf(cfg).Elem()
	for _, part := range strings.Split(key, ".") {
		f, ok := fieldsOf(v.Type())[part]
		if !ok {
			panic("config: no setting " + key) // a programming error
		}
		v = v.FieldByIndex(f.Index)
	}
	d.decode(n, v, key)
}
