package tool

import (
	"fmt"
	"strings"
)

// Name is the qualified name of a tool: the upstream that offers it and the
// name that the upstream gave it.
type Name struct {
	Server string
	Tool   string
}

// String returns the name as users write it, server:tool.
func (n Name) String() string { return n.Server + ":" + n.Tool }

// MarshalText returns the name as server:tool.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (n *Name) UnmarshalText(text []byte) error {
	parsed, err := ParseName(string(text))
	if err == nil {
		*n = parsed
	}
	return err
}

// ParseName parses a qualified name. The first colon separates the server from
// the tool, because tool names may contain colons and server names do not.
func ParseName(s string) (Name, error) {
	server, tool, ok := strings.Cut(s, ":")
	switch {
	case !ok || tool == "":
		return Name{}, &Error{Kind: InvalidArguments, Msg: fmt.Sprintf("%q is not a qualified tool name; write server:tool", s)}
	case !ValidServer(server):
		return Name{}, &Error{Kind: InvalidArguments, Msg: fmt.Sprintf("%q is not a server name; use 1 to 64 of A-Z a-z 0-9 _ -", server)}
	}
	return Name{Server: server, Tool: tool}, nil
}

// MaxServerName is the maximum length of a server's name in bytes.
const MaxServerName = 64

// ValidServer reports whether s is a valid name of an upstream.
func ValidServer(s string) bool {
	if s == "" || len(s) > MaxServerName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
