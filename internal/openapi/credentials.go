package openapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"junctor/internal/rawjson"
)

// scheme is a security scheme of the service.
type scheme struct {
	kind  string // apiKey, basic, bearer or oauth2
	in    string // location of an apiKey: header, query or cookie
	name  string
	token string // the token endpoint of an oauth2 scheme with client credentials

	// person means that people sign in. The endpoints are set if the document
	// has them.
	person                     bool
	authorization, personToken string
}

// readSchemes reads the security schemes of a document. Unsupported kinds are
// omitted.
func readSchemes(d *document) map[string]scheme {
	group := rawjson.Field(d.raw, "components", "securitySchemes")
	if d.dialect == swagger2 {
		group = rawjson.Field(d.raw, "securityDefinitions")
	}
	out := map[string]scheme{}
	for name, raw := range rawjson.Members(group) {
		raw, _, err := d.resolve(raw)
		if err != nil {
			continue
		}
		if s, ok := readScheme(raw); ok {
			out[name] = s
		}
	}
	return out
}

func readScheme(raw json.RawMessage) (scheme, bool) {
	switch kind := strings.ToLower(rawjson.FieldString(raw, "type")); kind {
	case "apikey":
		s := scheme{kind: "apiKey", in: rawjson.FieldString(raw, "in"), name: rawjson.FieldString(raw, "name")}
		return s, s.name != "" && slices.Contains([]string{"header", "query", "cookie"}, s.in)
	case "basic": // Swagger 2.0
		return scheme{kind: "basic"}, true
	case "http":
		s := scheme{kind: strings.ToLower(rawjson.FieldString(raw, "scheme"))}
		return s, s.kind == "basic" || s.kind == "bearer"
	case "oauth2", "openidconnect":
		token := rawjson.FieldString(raw, "flows", "clientCredentials", "tokenUrl")
		if rawjson.FieldString(raw, "flow") == "application" { // Swagger 2.0
			token = rawjson.FieldString(raw, "tokenUrl")
		}
		s := scheme{kind: "oauth2", token: token}
		flow := rawjson.Field(raw, "flows", "authorizationCode")
		if rawjson.FieldString(raw, "flow") == "accessCode" { // Swagger 2.0
			flow = raw
		}
		s.person = flow != nil || kind == "openidconnect"
		s.authorization, s.personToken = rawjson.FieldString(flow, "authorizationUrl"), rawjson.FieldString(flow, "tokenUrl")
		return s, true
	}
	return scheme{}, false
}

// credentialSource provides the credentials of a request.
type credentialSource struct {
	credentials map[string]string                    // by scheme
	token       func(scheme, string) (string, error) // returns the access token for a credential of an oauth2 scheme
	login       func(*http.Request) error            // sets the token of the person's login; nil if there is no login
}

// alternatives returns the alternative security requirements of an operation.
func (s *Service) alternatives(o *operation) []map[string][]string {
	if o.security == nil {
		return s.security
	}
	return o.security
}

// authorize adds the credentials of the first alternative for which all
// credentials exist. If there is none, the request is sent without
// credentials, because the configured headers may be sufficient.
func (s *Service) authorize(r *http.Request, o *operation, from credentialSource) error {
	for _, requirement := range s.alternatives(o) {
		if !s.satisfied(requirement, from) {
			continue
		}
		for name := range requirement {
			if err := s.schemes[name].apply(r, from.credentials[name], from); err != nil {
				return fmt.Errorf("credentials.%s: %w", name, err)
			}
		}
		return nil
	}
	return nil
}

func (s *Service) satisfied(requirement map[string][]string, from credentialSource) bool {
	for name := range requirement {
		sc, known := s.schemes[name]
		if !known || from.credentials[name] == "" && (!sc.person || from.login == nil) {
			return false
		}
	}
	return len(requirement) > 0
}

func (s scheme) apply(r *http.Request, credential string, from credentialSource) error {
	switch s.kind {
	case "apiKey":
		switch s.in {
		case "header":
			r.Header.Set(s.name, credential)
		case "query":
			if r.URL.RawQuery != "" {
				r.URL.RawQuery += "&"
			}
			r.URL.RawQuery += escapeValue(s.name) + "=" + escapeValue(credential)
		case "cookie":
			cookie := s.name + "=" + url.QueryEscape(credential)
			if before := r.Header.Get("Cookie"); before != "" {
				cookie = before + "; " + cookie
			}
			r.Header.Set("Cookie", cookie)
		}
	case "basic":
		r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(credential)))
	case "bearer":
		r.Header.Set("Authorization", "Bearer "+credential)
	case "oauth2":
		if credential == "" {
			return from.login(r)
		}
		access, err := from.token(s, credential)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+access)
	}
	return nil
}
