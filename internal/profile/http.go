package profile

import (
	"net/http"
	"net/url"
	"strings"

	"junctor/internal/httperr"
	"junctor/internal/tool"
)

const (
	// Parameter is the query parameter that selects a profile.
	Parameter = "profile"
	// pathPrefix is the prefix of the paths of the MCP API with a profile:
	// /profiles/NAME/mcp and /profiles/NAME/mcp/SERVER.
	pathPrefix = "/profiles/"
)

// Wrap narrows the callers of requests that select a profile, by the path or by
// [Parameter].
func (s *Set) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, path, inPath := split(r.URL.Path)
		var names []string
		if inPath {
			names = append(names, name)
		}
		if strings.Contains(r.URL.RawQuery, Parameter) || strings.Contains(r.URL.RawQuery, "%") {
			query, err := url.ParseQuery(r.URL.RawQuery)
			if err != nil && strings.Contains(r.URL.RawQuery, Parameter) { // a profile must not be ignored
				httperr.Write(w, r, &tool.Error{Kind: tool.InvalidRequest, Msg: "the query cannot be read: " + err.Error()})
				return
			}
			names = append(names, query[Parameter]...)
		}
		for _, name := range names {
			caller, err := s.Narrow(tool.CallerFrom(r.Context()), name)
			if err != nil {
				httperr.Write(w, r, err)
				return
			}
			r = httperr.WithContext(r, tool.SetCaller(r.Context(), &caller))
		}
		if inPath {
			narrowed, u := *r, *r.URL
			u.Path, u.RawPath = path, ""
			// So that URLs in the response, as in the old SSE transport, keep
			// the profile.
			u.RawQuery = strings.TrimSuffix(Parameter+"="+name+"&"+u.RawQuery, "&")
			narrowed.URL = &u
			r = &narrowed
		}
		next.ServeHTTP(w, r)
	})
}

// split returns the profile of a path and the path without it.
func split(path string) (name, rest string, ok bool) {
	after, ok := strings.CutPrefix(path, pathPrefix)
	if !ok {
		return "", "", false
	}
	name, rest, ok = strings.Cut(after, "/")
	if !ok || rest != "mcp" && !strings.HasPrefix(rest, "mcp/") {
		return "", "", false
	}
	return name, "/" + rest, true
}
