package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"junctor/internal/rawjson"
)

var (
	dollarName   = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	secretsName  = regexp.MustCompile(`\$\{\{\s*(?:[A-Za-z]+\.)?([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)
	colonName    = regexp.MustCompile(`\$\{([A-Za-z]+):([^}]*)\}`)
	predefined   = regexp.MustCompile(`\$\{(workspaceFolder|workspaceRoot|workspaceFolderBasename|userHome|pathSeparator|/)\}`)
	variableUse  = regexp.MustCompile(`\$?\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}`)
	neededName   = regexp.MustCompile(`(?:^|[^$])\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	relativePath = regexp.MustCompile(`^\.{1,2}[/\\]`)
)

// translate converts a client's syntax for variables and paths to Junctor's,
// so that the server works the same from another file.
func (c Client) translate(m Machine, f File, server json.RawMessage, inputs map[string]input, notes *[]string) json.RawMessage {
	note := func(format string, args ...any) {
		msg := fmt.Sprintf(format, args...)
		for _, have := range *notes {
			if have == msg {
				return
			}
		}
		*notes = append(*notes, msg)
	}
	folder := ""
	if f.Scope != User {
		folder = m.Project
	}
	out := mapStrings(server, func(key, s string) string {
		s = c.style.translate(m, folder, s, inputs, note)
		if folder != "" && relativePath.MatchString(s) && (key == "command" || key == "cwd" || key == "envFile") {
			s = m.join(folder, strings.TrimPrefix(strings.TrimPrefix(s, "./"), `.\`))
		}
		return s
	})
	if folder != "" {
		// Servers of a project run in the project's folder.
		if _, has := member(out, "command"); has {
			if _, has := member(out, "cwd"); !has {
				quoted, err := json.Marshal(folder)
				if err == nil {
					out = append(bytes.TrimSuffix(bytes.TrimSpace(out), []byte("}")), fmt.Appendf(nil, `,"cwd":%s}`, quoted)...)
				}
			}
		}
	}
	return out
}

func (v variables) translate(m Machine, folder, s string, inputs map[string]input, note func(string, ...any)) string {
	switch v {
	case dollar:
		return dollarName.ReplaceAllString(s, "$${$1}")
	case secrets:
		return secretsName.ReplaceAllString(s, "$${$1}")
	case envColon:
		s = colonName.ReplaceAllStringFunc(s, func(match string) string {
			parts := colonName.FindStringSubmatch(match)
			switch parts[1] {
			case "env":
				return "${" + parts[2] + "}"
			case "input":
				return inputs[parts[2]].translate(parts[2], note)
			}
			note("%s has no meaning outside the client", match)
			return match
		})
		return predefined.ReplaceAllStringFunc(s, func(match string) string {
			switch name := match[2 : len(match)-1]; name {
			case "userHome":
				return m.Home
			case "pathSeparator", "/":
				return m.join("", "")
			case "workspaceFolderBasename":
				if folder != "" {
					return folder[strings.LastIndexAny(folder, `/\`)+1:]
				}
			default:
				if folder != "" {
					return folder
				}
			}
			note("%s is a different folder in every project; replace it with a path", match)
			return match
		})
	}
	return s
}

// mapStrings replaces every string in a JSON value by the result of f, which
// also gets the top-level key. The order of members is preserved.
func mapStrings(raw json.RawMessage, f func(key, s string) string) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var b bytes.Buffer
	copyValue(dec, &b, "", f)
	return b.Bytes()
}

func copyValue(dec *json.Decoder, b *bytes.Buffer, key string, f func(key, s string) string) {
	t, err := dec.Token()
	if err != nil {
		b.WriteString("null")
		return
	}
	switch t := t.(type) {
	case json.Delim:
		b.WriteString(t.String())
		for i := 0; dec.More(); i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			inner := key
			if t == '{' {
				name, _ := dec.Token()
				text, _ := name.(string)
				b.Write(rawjson.MarshalOrNull(text))
				b.WriteByte(':')
				if inner == "" {
					inner = text
				}
			}
			copyValue(dec, b, inner, f)
		}
		if end, err := dec.Token(); err == nil {
			fmt.Fprint(b, end)
		}
	case string:
		b.Write(rawjson.MarshalOrNull(f(key, t)))
	default:
		b.Write(rawjson.MarshalOrNull(t))
	}
}

// member returns a member of a JSON object.
func member(raw json.RawMessage, key string) (json.RawMessage, bool) {
	var obj map[string]json.RawMessage
	if json.Unmarshal(raw, &obj) != nil {
		return nil, false
	}
	v, ok := obj[key]
	return v, ok
}

// order is the order of a server's keys; the others follow.
var order = []string{"command", "args", "env", "envFile", "cwd", "url", "transport", "headers", "authorization_token", "oauth"}

// tidy removes defaults and puts the keys into the usual order.
func tidy(raw json.RawMessage) json.RawMessage {
	var obj map[string]json.RawMessage
	if json.Unmarshal(raw, &obj) != nil {
		return raw
	}
	_, program := obj["command"]
	keys := append(slices.Clone(order), slices.Sorted(maps.Keys(obj))...)
	var b bytes.Buffer
	b.WriteByte('{')
	for _, key := range keys {
		value, ok := obj[key]
		delete(obj, key)
		switch text := string(value); {
		case !ok, text == "{}", text == "[]",
			key == "enabled" && text == "true",
			key == "transport" && (text == `"auto"` || text == `"stdio"` && program):
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(rawjson.MarshalOrNull(key))
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
