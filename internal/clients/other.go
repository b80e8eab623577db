package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"junctor/internal/rawjson"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v4"
)

// tomlServers returns the tables under key as a JSON object, in the same
// order.
func tomlServers(data []byte, key string) (json.RawMessage, error) {
	var doc map[string]any
	meta, err := toml.Decode(string(data), &doc)
	if err != nil {
		return nil, fmt.Errorf("is not TOML: %w", err)
	}
	servers, ok := doc[key].(map[string]any)
	if !ok {
		return nil, nil
	}
	var b bytes.Buffer
	b.WriteByte('{')
	written := map[string]bool{}
	for _, k := range meta.Keys() {
		if len(k) < 2 || k[0] != key || written[k[1]] {
			continue
		}
		written[k[1]] = true
		name, err := json.Marshal(k[1])
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(servers[k[1]])
		if err != nil {
			return nil, err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// yamlServers returns the servers of a Continue file as a JSON list, without
// entries that only refer to Continue's hub.
func yamlServers(data []byte) (json.RawMessage, error) {
	var doc struct {
		Servers []map[string]any `yaml:"mcpServers"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("is not YAML: %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	var list []map[string]any
	for _, s := range doc.Servers {
		if s["uses"] != nil {
			continue
		}
		if o, ok := s["requestOptions"].(map[string]any); ok {
			if h, ok := o["headers"]; ok && s["headers"] == nil {
				s["headers"] = h
			}
			delete(s, "requestOptions")
		}
		for _, key := range []string{"env", "headers"} {
			if values, ok := s[key].(map[string]any); ok {
				for name, v := range values {
					if _, isText := v.(string); !isText && v != nil {
						values[name] = fmt.Sprint(v) // numbers and booleans, which YAML allows unquoted
					}
				}
			}
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("has servers that cannot be converted to JSON: %w", err)
	}
	return raw, nil
}

// setTOML sets a server in a TOML text and leaves the rest unchanged. The
// server's table and its subtables are replaced or, if there are none, added
// at the end.
func setTOML(data []byte, key, name string, e entry) ([]byte, error) {
	rest, err := removeTOML(data, key, name)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[%s.%s]\n", key, tomlKey(name))
	for _, p := range e {
		value, err := tomlValue(p.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s = %s\n", tomlKey(p.key), value)
	}
	out := appendTOML(string(rest), b.String())
	var check map[string]any
	if _, err := toml.Decode(out, &check); err != nil {
		return nil, fmt.Errorf("the change would break the file: %w", err)
	}
	return []byte(out), nil
}

// removeTOML removes a server's table and its subtables from a TOML text.
func removeTOML(data []byte, key, name string) ([]byte, error) {
	raw, err := tomlServers(data, key)
	if err != nil {
		return nil, err
	}
	var have map[string]json.RawMessage
	if raw != nil {
		if err := json.Unmarshal(raw, &have); err != nil {
			return nil, err
		}
	}
	if _, ok := have[name]; !ok {
		return data, nil
	}
	own, rest := splitTOML(string(data), key, name)
	if own == "" {
		return nil, fmt.Errorf("%s is written inside another table; remove it by hand", name)
	}
	if strings.HasSuffix(string(data), own) { // with the blank line before it
		for _, end := range []string{"\n", "\r\n"} {
			if strings.HasSuffix(rest, "\n"+end) {
				rest = strings.TrimSuffix(rest, end)
				break
			}
		}
	}
	return []byte(rest), nil
}

// splitTOML separates the tables of a server, with the comments directly above
// them, from the rest. Comments above the following table remain in the rest.
func splitTOML(text, key, name string) (own, rest string) {
	var mine, others []string
	inside := false
	remarks := 0 // number of trailing lines that are blank or comments
	var at tomlPlace
	for line := range strings.Lines(text) {
		top := at.top()
		at = at.after(line)
		if header, ok := tomlHeader(line); ok && top {
			was := inside
			inside = len(header) >= 2 && header[0] == key && header[1] == name
			switch {
			case inside && !was:
				n := len(others)
				for n > len(others)-remarks && strings.TrimSpace(others[n-1]) != "" {
					n--
				}
				mine, others = append(mine, others[n:]...), others[:n]
			case was && !inside:
				n := len(mine) - nextRemarks(mine[len(mine)-remarks:], true)
				mine, others = mine[:n], append(others, mine[n:]...)
			}
		}
		if blank := strings.TrimSpace(line); top && (blank == "" || blank[0] == '#') {
			remarks++
		} else {
			remarks = 0
		}
		if inside {
			mine = append(mine, line)
		} else {
			others = append(others, line)
		}
	}
	if inside {
		n := len(mine) - nextRemarks(mine[len(mine)-remarks:], false)
		mine, others = mine[:n], append(others, mine[n:]...)
	}
	return strings.Join(mine, ""), strings.Join(others, "")
}

// nextRemarks returns the number of lines at the end of a table that belong to
// what follows: the comments after the first blank line or, if a table follows
// directly, all of them.
func nextRemarks(lines []string, followed bool) int {
	blank := func(line string) bool { return strings.TrimSpace(line) == "" }
	first := slices.IndexFunc(lines, blank)
	if first < 0 {
		if followed {
			return len(lines)
		}
		return 0
	}
	n := slices.IndexFunc(lines[first:], func(line string) bool { return !blank(line) })
	if n < 0 {
		return 0
	}
	return len(lines) - first - n
}

// tomlPlace is the state at the start of a line of TOML: inside a multi-line
// string with the given quotes, or inside depth brackets of an array. There, a
// line that looks like a table header is not one.
type tomlPlace struct {
	quotes string
	depth  int
}

func (p tomlPlace) top() bool { return p.quotes == "" && p.depth == 0 }

// after returns the state at the end of a line. The text must be valid TOML.
func (p tomlPlace) after(line string) tomlPlace {
	if _, ok := tomlHeader(line); ok && p.top() {
		return p
	}
	for line != "" {
		switch {
		case p.quotes != "":
			if p.quotes[0] == '"' && line[0] == '\\' && len(line) > 1 {
				line = line[2:]
				continue
			}
			if rest, ok := strings.CutPrefix(line, p.quotes); ok {
				if len(p.quotes) == 3 { // up to two more quotes belong to the string
					rest = strings.TrimLeft(rest, p.quotes[:1])
				}
				p.quotes, line = "", rest
				continue
			}
		case line[0] == '#':
			return p
		case strings.HasPrefix(line, `"""`), strings.HasPrefix(line, "'''"):
			p.quotes, line = line[:3], line[3:]
			continue
		case line[0] == '"' || line[0] == '\'':
			p.quotes = line[:1]
		case line[0] == '[':
			p.depth++
		case line[0] == ']':
			p.depth--
		}
		line = line[1:]
	}
	return p
}

// appendTOML appends tables after a blank line, with the line endings of the
// text.
func appendTOML(text, tables string) string {
	end := "\n"
	if strings.Contains(text, "\r\n") {
		end = "\r\n"
		tables = strings.ReplaceAll(strings.ReplaceAll(tables, "\r\n", "\n"), "\n", end)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += end
	}
	if strings.TrimSpace(text) != "" && !strings.HasSuffix(text, "\n\n") && !strings.HasSuffix(text, "\n\r\n") {
		text += end
	}
	return text + tables
}

// tomlHeader parses a line such as [mcp_servers."my server".env] or [[hooks]].
func tomlHeader(line string) ([]string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "[") {
		return nil, false
	}
	var doc map[string]any
	meta, err := toml.Decode(line, &doc)
	if err != nil || len(meta.Keys()) == 0 {
		return nil, false
	}
	return meta.Keys()[len(meta.Keys())-1], true
}

func tomlKey(s string) string {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return tomlString(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// tomlString returns a basic string; TOML accepts JSON's escapes.
func tomlString(s string) string {
	return strings.ReplaceAll(string(rawjson.MarshalOrNull(s)), "\x7f", `\u007F`)
}

func tomlValue(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return tomlString(v), nil
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			parts[i] = tomlString(s)
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	}
	return "", fmt.Errorf("a %T cannot be written as TOML", v)
}
