package main

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

// openAPIFlags describe an HTTP service whose operations become tools.
type openAPIFlags struct {
	document, base   string
	include, exclude []string
	credentials      []string
}

func (o *openAPIFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.document, "openapi", "", "make tools of the operations in this OpenAPI `document` (URL or file)")
	f.StringVar(&o.base, "base-url", "", "the `address` of the service, if not that in the OpenAPI document")
	f.StringArrayVar(&o.include, "include", nil, "operations that become tools, by id or METHOD and path: `GLOB` (repeatable)")
	f.StringArrayVar(&o.exclude, "exclude", nil, "operations that do not become tools: `GLOB` (repeatable)")
	f.StringArrayVar(&o.credentials, "credential", nil, "a credential for a security scheme of the OpenAPI document: `SCHEME=VALUE` (repeatable)")
}

// fill adds the values of the flags to a server's entry.
func (o *openAPIFlags) fill(entry map[string]any) error {
	entry["openapi"] = o.document
	if !strings.Contains(o.document, "://") {
		path, err := filepath.Abs(o.document)
		if err != nil {
			return err
		}
		entry["openapi"] = path
	} else if !strings.HasPrefix(o.document, "http://") && !strings.HasPrefix(o.document, "https://") {
		return errors.New("--openapi takes a file or a URL that starts with http:// or https://")
	}
	if o.base != "" {
		entry["baseUrl"] = o.base
	}
	operations := map[string][]string{}
	if len(o.include) > 0 {
		operations["include"] = o.include
	}
	if len(o.exclude) > 0 {
		operations["exclude"] = o.exclude
	}
	if len(operations) > 0 {
		entry["operations"] = operations
	}
	credentials, err := parsePairs("credentials", o.credentials)
	if len(credentials) > 0 {
		entry["credentials"] = credentials
	}
	return err
}
