package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Entry is one server of a file of any shape, converted to Junctor's own keys,
// with its variables unexpanded: ready to be added to another file.
type Entry struct {
	Name     string          // as in the file; possibly not a legal name in Junctor
	Server   json.RawMessage // an object with command or url
	Problems []Problem       // errors, and keys that were dropped
}

// Entries returns the servers of a file of any shape. It expands no variables
// and validates only the shape. file is the name of the file in problems. If
// the error is not nil, the servers may still include those that could be read.
func Entries(file string, text []byte) ([]Entry, error) {
	src := &source{file: file, data: bytes.TrimPrefix(text, bom)}
	if len(bytes.TrimSpace(src.data)) == 0 {
		return nil, nil
	}
	v, err := src.parse()
	if err != nil {
		return nil, err
	}
	var loose []Problem // those that belong to no entry
	root := newTree(src, v, func(p Problem) { loose = append(loose, p) })
	if root.kind == object && root.get("mcp") != nil && !root.get("mcp").has("servers", "inputs") {
		root.take("mcp") // of opencode or another program
	}
	found, _ := entries(root, func(n *node, msg string) { loose = append(loose, src.at(n.offset, n.path, msg)) })
	var all []Entry
	for _, e := range found {
		entry := Entry{Name: e.name}
		note := func(n *node, msg string) { entry.Problems = append(entry.Problems, src.at(n.offset, n.path, msg)) }
		if e.node.kind != object {
			note(e.node, "is "+string(e.node.kind)+", must be an object with command or url")
		} else {
			normalise(e, note, func(_ string, n *node, msg string) { note(n, msg) })
			entry.Server = e.node.json()
		}
		all = append(all, entry)
	}
	if len(loose) > 0 {
		return all, &Error{sorted(loose)}
	}
	return all, nil
}

// json returns the node as JSON, with variables unexpanded.
func (n *node) json() json.RawMessage {
	var b bytes.Buffer
	n.write(&b, func(s *node) string { return s.text })
	return b.Bytes()
}

// expanded returns the node as JSON, with variables expanded.
func (n *node) expanded() json.RawMessage {
	var b bytes.Buffer
	n.write(&b, func(s *node) string { return s.value })
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer, text func(*node) string) {
	quote := func(s string) { b.Write(rawjson.MarshalOrNull(s)) }
	switch n.kind {
	case object:
		b.WriteByte('{')
		comma := ""
		for _, m := range n.members {
			if m.value.kind == null {
				continue // null counts as absent
			}
			b.WriteString(comma)
			comma = ","
			quote(m.name)
			b.WriteByte(':')
			m.value.write(b, text)
		}
		b.WriteByte('}')
	case array:
		b.WriteByte('[')
		for i, e := range n.elems {
			if i > 0 {
				b.WriteByte(',')
			}
			e.write(b, text)
		}
		b.WriteByte(']')
	case str:
		quote(text(n))
	default:
		b.WriteString(n.text)
	}
}

// LegalName returns a legal server name derived from name: "My Server" becomes
// My-Server. It returns "" if no legal character is left.
func LegalName(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 && i < len(name)-1 && strings.Contains(name[:i], "/") {
		// Marketplaces name servers by their repository: the last part
		// identifies the server.
		name = name[i+1:]
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i : i+1]; tool.ValidServer(c) {
			b.WriteString(c)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	legal := b.String()
	return strings.Trim(legal[:min(len(legal), tool.MaxServerName)], "-")
}

// ParseDotenv parses NAME=value lines; file is the name of the file in problems.
func ParseDotenv(file string, text []byte) (map[string]string, error) {
	vars, problems := parseDotenv(&source{file: file, data: bytes.TrimPrefix(text, bom)})
	if len(problems) > 0 {
		return vars, &Error{problems}
	}
	return vars, nil
}
