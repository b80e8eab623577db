// Package openapitest compares responses of the gateway with its OpenAPI
// document, in tests.
package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Checker checks responses against the schemas of a document.
type Checker struct {
	mux *http.ServeMux

	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

// New parses a document.
func New(document []byte) (*Checker, error) {
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err == nil {
		err = json.Unmarshal(document, &doc)
	}
	if err != nil {
		return nil, err
	}
	c := &Checker{mux: http.NewServeMux(), compiler: jsonschema.NewCompiler()}
	for path, methods := range doc.Paths {
		for method := range methods {
			// Names of tools may contain slashes.
			c.mux.HandleFunc(strings.ToUpper(method)+" "+strings.Replace(path, "{tool}", "{tool...}", 1), func(http.ResponseWriter, *http.Request) {})
		}
	}
	return c, c.compiler.AddResource("mem:///openapi.json", parsed)
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// Check returns an error if a response does not match its schema. A response
// with a status that the document does not list is compared with the
// operation's default.
func (c *Checker) Check(method, path string, status int, header http.Header, body []byte) error {
	u, err := url.Parse(path)
	if err != nil {
		return err
	}
	_, pattern := c.mux.Handler(&http.Request{Method: method, URL: u})
	_, template, ok := strings.Cut(strings.Replace(pattern, "...}", "}", 1), " ")
	if !ok {
		return fmt.Errorf("%s %s is not described", method, path)
	}
	if len(body) == 0 {
		return nil
	}
	media, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	at := "/paths/" + escape.Replace(template) + "/" + strings.ToLower(method) + "/responses/"
	schema, err := c.compile(at + fmt.Sprint(status) + "/content/" + escape.Replace(media) + "/schema")
	if err != nil && status >= 400 {
		schema, err = c.compile(at + "default/content/" + escape.Replace(media) + "/schema")
	}
	if err != nil {
		return fmt.Errorf("%s %s: status %d with %s is not described: %w", method, template, status, media, err)
	}
	var v any = string(body)
	if media == "application/json" {
		if v, err = jsonschema.UnmarshalJSON(bytes.NewReader(body)); err != nil {
			return fmt.Errorf("%s %s: %w in %.600s", method, path, err, body)
		}
	}
	if err := schema.Validate(v); err != nil {
		return fmt.Errorf("%s %s %d is not as described: %w\n%.600s", method, path, status, err, body)
	}
	return nil
}

func (c *Checker) compile(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compiler.Compile("mem:///openapi.json#" + (&url.URL{Path: pointer}).EscapedPath())
}

// Main runs the tests of a package and returns the exit code. It checks the
// responses that they read with http.DefaultClient against the document in
// file.
func Main(m interface{ Run() int }, file string) int {
	document, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	c, err := New(document)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", file, err))
	}
	var mu sync.Mutex
	var wrong []error
	http.DefaultClient.Transport = c.transport(http.DefaultTransport, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		wrong = append(wrong, err)
	})
	code := m.Run()
	mu.Lock()
	defer mu.Unlock()
	for _, err := range wrong {
		fmt.Fprintf(os.Stderr, "FAIL: %v\n", err)
		code = 1
	}
	return code
}

// transport checks the JSON responses to described requests below /api/ and
// passes mismatches to report.
func (c *Checker) transport(next http.RoundTripper, report func(error)) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		res, err := next.RoundTrip(req)
		if err != nil || !strings.HasPrefix(req.URL.Path, "/api/") || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
			return res, err
		}
		if _, pattern := c.mux.Handler(req); pattern == "" {
			return res, nil
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, err
		}
		if err := res.Body.Close(); err != nil {
			return nil, err
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
		if err := c.Check(req.Method, req.URL.EscapedPath(), res.StatusCode, res.Header, body); err != nil {
			report(err)
		}
		return res, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
