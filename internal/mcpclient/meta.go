package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Capabilities are the client capabilities that are declared to a server.
type Capabilities struct {
	Sampling        bool
	SamplingTools   bool // sampling with tools, since 2025-11-25
	ElicitationForm bool
	ElicitationURL  bool // since 2025-11-25
	Roots           bool

	// Extensions and Experimental are declared as they are; nil declares none.
	Extensions   json.RawMessage
	Experimental json.RawMessage
}

// allow reports whether the declared capabilities allow the request.
func (k Capabilities) allow(method string) bool {
	switch method {
	case mcp.MethodSample:
		return k.Sampling
	case mcp.MethodElicit:
		return k.ElicitationForm || k.ElicitationURL
	case mcp.MethodRootsList:
		return k.Roots
	}
	return false
}

// JSON returns the capabilities as initialize declares them.
func (k Capabilities) JSON() json.RawMessage {
	out := json.RawMessage(`{}`)
	if k.Roots {
		out = rawjson.SetField(out, json.RawMessage(`{}`), "roots")
	}
	if k.ElicitationForm {
		out = rawjson.SetField(out, json.RawMessage(`{}`), "elicitation", "form")
	}
	if k.ElicitationURL {
		out = rawjson.SetField(out, json.RawMessage(`{}`), "elicitation", "url")
	}
	if k.Sampling {
		sampling := json.RawMessage(`{}`)
		if k.SamplingTools {
			sampling = json.RawMessage(`{"tools":{}}`)
		}
		out = rawjson.SetField(out, sampling, "sampling")
	}
	return k.extend(out)
}

// extend adds the extensions and experimental capabilities.
func (k Capabilities) extend(out json.RawMessage) json.RawMessage {
	if k.Extensions != nil {
		out = rawjson.SetField(out, k.Extensions, "extensions")
	}
	if k.Experimental != nil {
		out = rawjson.SetField(out, k.Experimental, "experimental")
	}
	return out
}

// Extended returns the capabilities with the extensions and experimental
// capabilities of a caller in place of its own.
func (k Capabilities) Extended(caller json.RawMessage) Capabilities {
	k.Extensions, k.Experimental = nil, nil
	if v := rawjson.Field(caller, "extensions"); rawjson.IsObject(v) {
		k.Extensions = v
	}
	if v := rawjson.Field(caller, "experimental"); rawjson.IsObject(v) {
		k.Experimental = v
	}
	return k
}

// common returns the capabilities that both k and the caller have. In the
// stateless era each request declares them, so that a server asks only callers
// that can answer.
func (k Capabilities) common(caller json.RawMessage) json.RawMessage {
	out := json.RawMessage(`{}`)
	if v := rawjson.Field(caller, "sampling"); k.Sampling && rawjson.IsObject(v) {
		if !k.SamplingTools {
			v = rawjson.DeleteField(v, "tools")
		}
		out = rawjson.SetField(out, v, "sampling")
	}
	if v := rawjson.Field(caller, "elicitation"); rawjson.IsObject(v) {
		// In older clients an empty object means "form".
		form := rawjson.Field(v, "form") != nil || rawjson.Field(v, "url") == nil
		both := Capabilities{ElicitationForm: k.ElicitationForm && form, ElicitationURL: k.ElicitationURL && rawjson.Field(v, "url") != nil}
		if e := rawjson.Field(both.JSON(), "elicitation"); e != nil {
			out = rawjson.SetField(out, e, "elicitation")
		}
	}
	if v := rawjson.Field(caller, "roots"); k.Roots && rawjson.IsObject(v) {
		out = rawjson.SetField(out, v, "roots")
	}
	return out
}

// clientInfo returns the clientInfo object that identifies the client.
func (o *Options) clientInfo() json.RawMessage {
	info := struct {
		Name    string `json:"name"`
		Title   string `json:"title,omitempty"`
		Version string `json:"version"`
	}{o.Name, o.Title, o.Version}
	if info.Name == "" {
		info.Name = "junctor"
	}
	b, err := json.Marshal(info)
	if err != nil { // strings always marshal
		return json.RawMessage(`{"name":"junctor","version":""}`)
	}
	return b
}

// addMeta adds the _meta that the stateless era requires in every request. It
// replaces what the caller put under the same keys, which described the caller's
// own connection. ex is nil for requests of the client itself.
func (c *Client) addMeta(params json.RawMessage, version, method string, ex *tool.Exchange) json.RawMessage {
	at, has := rawjson.Find(params, "_meta")
	meta := params[at.Start:at.End]
	out := make([]byte, 0, len(params)+len(c.self)+256)
	out = append(out, params[:at.Start]...)
	out = append(out, `{"`+mcp.MetaProtocolVersion+`":`...)
	out = rawjson.AppendQuoted(out, version)
	out = append(out, `,"`+mcp.MetaClientInfo+`":`...)
	out = append(out, c.self...)
	out = append(out, `,"`+mcp.MetaClientCapabilities+`":`...)
	out = append(out, c.declare(method, ex)...)
	leveled := false
	for m := range rawjson.Positions(meta) {
		switch string(m.Name(meta)) {
		case mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities, mcp.MetaSubscriptionID:
			continue
		case mcp.MetaLogLevel:
			leveled = true
		}
		out = append(append(out, ','), meta[m.KeyStart:m.End]...)
	}
	if level := c.logLevel.Load(); level != nil && method == mcp.MethodToolsCall && !leveled {
		out = append(out, `,"`+mcp.MetaLogLevel+`":`...)
		out = rawjson.AppendQuoted(out, *level)
	}
	out = append(out, '}')
	if !has {
		return rawjson.SetField(params, out, "_meta")
	}
	return append(out, params[at.End:]...)
}

// declare returns the capabilities to declare in a request.
func (c *Client) declare(method string, ex *tool.Exchange) json.RawMessage {
	if ex == nil || !ex.Transparent && !mcp.MayNeedInput(method) {
		return c.declared
	}
	k := c.opts.Capabilities
	if ex.Transparent {
		if ex.PassInput && rawjson.IsObject(ex.Capabilities) {
			return ex.Capabilities
		}
		k = k.Extended(ex.Capabilities)
	} else if ex.PassInput && rawjson.IsObject(ex.Capabilities) {
		// Declare only the extensions that this program supports.
		own := rawjson.DeleteField(rawjson.DeleteField(ex.Capabilities, "extensions"), "experimental")
		return k.extend(own)
	}
	if ex.Ask == nil {
		return k.extend(json.RawMessage(`{}`))
	}
	return k.extend(k.common(ex.Capabilities))
}

// withoutMeta removes from a request to a server of the handshake era the _meta
// that a caller of the stateless era added. The log level in it is sent with
// logging/setLevel instead.
func (c *Client) withoutMeta(ctx context.Context, params json.RawMessage) json.RawMessage {
	meta := rawjson.Field(params, "_meta")
	if meta == nil || !bytes.Contains(meta, []byte("io.modelcontextprotocol/")) {
		return params
	}
	if level := rawjson.FieldString(meta, mcp.MetaLogLevel); level != "" {
		c.raiseLogLevel(ctx, level)
	}
	stripped := meta
	for _, key := range []string{mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities, mcp.MetaLogLevel, mcp.MetaSubscriptionID} {
		stripped = rawjson.DeleteField(stripped, key)
	}
	if len(stripped) == len(meta) {
		return params
	}
	if i := rawjson.SkipSpace(stripped, rawjson.SkipSpace(stripped, 0)+1); i < len(stripped) && stripped[i] == '}' {
		return rawjson.DeleteField(params, "_meta")
	}
	return rawjson.SetField(params, stripped, "_meta")
}

// raiseLogLevel sends a server of the handshake era a more verbose log level,
// once per level. It never sends a less verbose one, because the session is
// shared.
func (c *Client) raiseLogLevel(ctx context.Context, level string) {
	if rawjson.Field(c.info.Load().Capabilities, "logging") == nil {
		return
	}
	for {
		old := c.logLevel.Load()
		if !mcp.ValidLogLevel(level) || old != nil && !mcp.LessSevere(level, *old) {
			return
		}
		if c.logLevel.CompareAndSwap(old, &level) {
			break
		}
	}
	if _, err := c.round(ctx, tool.Request{Method: mcp.MethodSetLevel}, rawjson.SetField(nil, rawjson.AppendQuoted(nil, level), "level")); err != nil {
		c.log.Debug("cannot set the log level", "err", err)
	}
}
