package openapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"junctor/internal/rawjson"
)

// Source is the origin of a document.
type Source struct {
	URL    string // empty for a file
	Folder string // of a file; references to files in it are allowed
}

// Service is the HTTP service that a document describes.
type Service struct {
	Title, Version, Description string

	// Base is the address of the service. Named reports whether it is from the
	// configuration or from a document that is a local file.
	Base  *url.URL
	Named bool

	// Skipped lists the operations without a tool, with the reasons.
	Skipped []string

	operations []*operation
	byName     map[string]*operation
	schemes    map[string]scheme
	security   []map[string][]string
}

// Parse parses a document. baseURL replaces the document's own base URL unless
// it is empty.
func Parse(data []byte, from Source, baseURL string, filter Filter) (*Service, error) {
	keep, err := filter.compile()
	if err != nil {
		return nil, err
	}
	d, err := newDocument(data)
	if err != nil {
		return nil, err
	}
	if from.Folder != "" {
		root, err := os.OpenRoot(from.Folder)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }()
		d.files = &files{root: root, size: len(data), read: map[string]*document{}}
	}
	s := &Service{
		Title: rawjson.FieldString(d.raw, "info", "title"), Version: scalar(rawjson.Field(d.raw, "info", "version")),
		Description: rawjson.FieldString(d.raw, "info", "description"),
		Named:       baseURL != "" || from.URL == "",
		schemes:     readSchemes(d), security: requirements(rawjson.Field(d.raw, "security")),
	}
	if s.Base, err = base(d, from, baseURL); err != nil {
		return nil, err
	}
	for name, sc := range s.schemes { // endpoints may be relative
		for _, endpoint := range []*string{&sc.token, &sc.authorization, &sc.personToken} {
			if u, err := s.Base.Parse(*endpoint); err == nil && *endpoint != "" {
				*endpoint = u.String()
			}
		}
		s.schemes[name] = sc
	}
	if s.operations, s.Skipped, err = operations(d, keep); err != nil {
		return nil, err
	}
	s.byName = make(map[string]*operation, len(s.operations))
	for i := 0; i < len(s.operations); i++ {
		o := s.operations[i]
		if host := s.otherHost(o, from); host != "" {
			s.Skipped = append(s.Skipped, fmt.Sprintf("%s %s: is at another host, %s; add a server with that baseUrl", o.method, o.path, host))
			s.operations = append(s.operations[:i], s.operations[i+1:]...)
			i--
			continue
		}
		s.byName[o.name] = o
	}
	if len(s.operations) == 0 {
		return nil, s.empty()
	}
	return s, nil
}

func (s *Service) empty() error {
	if len(s.Skipped) > 0 {
		return fmt.Errorf("no operation can be used; the first: %s", s.Skipped[0])
	}
	return errors.New("no operation is selected; check paths in the document and operations.include and exclude")
}

// base returns the address of the service.
func base(d *document, from Source, configured string) (*url.URL, error) {
	raw := cmp.Or(configured, baseOf(d))
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the address of the service, %q, is not a URL", raw)
	}
	if !u.IsAbs() && from.URL != "" {
		origin, err := url.Parse(from.URL)
		if err != nil {
			return nil, err
		}
		u = origin.ResolveReference(u)
		if raw == "" {
			u.Path = "/"
		}
		u.RawQuery = ""
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("the document gives no http or https URL for its service (%q); set baseUrl", raw)
	case strings.ContainsAny(u.Path, "{}"):
		return nil, fmt.Errorf("the address of the service, %q, has a variable without a default; set baseUrl", raw)
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return u, nil
}

// otherHost returns the host of an operation's own server if it differs from
// the service's, because credentials are for one host only. A server on the
// same host replaces the base URL for that operation.
func (s *Service) otherHost(o *operation, from Source) string {
	if o.server == "" {
		return ""
	}
	u, err := s.Base.Parse(o.server)
	if err == nil && from.URL != "" && !strings.Contains(o.server, "://") {
		if origin, bad := url.Parse(from.URL); bad == nil {
			u = origin.ResolveReference(&url.URL{Path: o.server})
		}
	}
	if err != nil {
		return o.server
	}
	if u.Host != s.Base.Host || u.Scheme != s.Base.Scheme {
		return u.Host
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	o.server = u.String()
	return ""
}

// list returns a page of the tools, starting at offset.
func (s *Service) list(offset int) json.RawMessage {
	const pageBytes = 1 << 20
	dst := []byte(`{"tools":[`)
	for i := offset; i < len(s.operations); i++ {
		if len(dst) > pageBytes {
			return fmt.Appendf(dst, `],"nextCursor":"%d"}`, i)
		}
		dst = append(rawjson.AppendComma(dst), s.operations[i].definition...)
	}
	return append(dst, `]}`...)
}

// Tools returns the names of the tools.
func (s *Service) Tools() []string {
	out := make([]string, len(s.operations))
	for i, o := range s.operations {
		out[i] = o.name
	}
	return out
}
