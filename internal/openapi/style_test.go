package openapi

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// service parses a document with the given operation at one path.
func service(t *testing.T, path, operation string) *Service {
	t.Helper()
	s, err := Parse([]byte(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"http://service.example/v1"}],
		"paths":{"`+path+`":`+operation+`}}`), Source{Folder: t.TempDir()}, "", Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Skipped) > 0 {
		t.Fatal(s.Skipped)
	}
	return s
}

func (s *Service) only(t *testing.T) *operation {
	t.Helper()
	if len(s.operations) != 1 {
		t.Fatalf("%d operations", len(s.operations))
	}
	return s.operations[0]
}

// TestParameterStyles checks the style examples in the OpenAPI specification.
func TestParameterStyles(t *testing.T) {
	const empty, text, list, object = `""`, `"blue"`, `["blue","black","brown"]`, `{"R":100,"G":200,"B":150}`
	for _, c := range []struct {
		in, style string
		explode   bool
		value     string
		want      string
	}{
		{"path", "matrix", false, text, ";color=blue"},
		{"path", "matrix", false, list, ";color=blue,black,brown"},
		{"path", "matrix", false, object, ";color=R,100,G,200,B,150"},
		{"path", "matrix", true, text, ";color=blue"},
		{"path", "matrix", true, list, ";color=blue;color=black;color=brown"},
		{"path", "matrix", true, object, ";R=100;G=200;B=150"},
		{"path", "label", false, text, ".blue"},
		{"path", "label", false, list, ".blue,black,brown"},
		{"path", "label", false, object, ".R,100,G,200,B,150"},
		{"path", "label", true, text, ".blue"},
		{"path", "label", true, list, ".blue.black.brown"},
		{"path", "label", true, object, ".R=100.G=200.B=150"},
		{"path", "simple", false, text, "blue"},
		{"path", "simple", false, list, "blue,black,brown"},
		{"path", "simple", false, object, "R,100,G,200,B,150"},
		{"path", "simple", true, list, "blue,black,brown"},
		{"path", "simple", true, object, "R=100,G=200,B=150"},
		{"query", "form", false, empty, "color="},
		{"query", "form", false, text, "color=blue"},
		{"query", "form", false, list, "color=blue,black,brown"},
		{"query", "form", false, object, "color=R,100,G,200,B,150"},
		{"query", "form", true, text, "color=blue"},
		{"query", "form", true, list, "color=blue&color=black&color=brown"},
		{"query", "form", true, object, "R=100&G=200&B=150"},
		{"query", "spaceDelimited", false, list, "color=blue%20black%20brown"},
		{"query", "spaceDelimited", false, object, "color=R%20100%20G%20200%20B%20150"},
		{"query", "pipeDelimited", false, list, "color=blue%7Cblack%7Cbrown"},
		{"query", "pipeDelimited", false, object, "color=R%7C100%7CG%7C200%7CB%7C150"},
		{"query", "deepObject", true, object, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"},
		{"query", "deepObject", true, `{"a":{"b":[1,2]}}`, "color%5Ba%5D%5Bb%5D=1&color%5Ba%5D%5Bb%5D=2"},
		{"header", "simple", false, list, "blue,black,brown"},
		{"header", "simple", false, object, "R,100,G,200,B,150"},
		{"header", "simple", true, object, "R=100,G=200,B=150"},
		{"cookie", "form", false, text, "color=blue"},
		{"cookie", "form", false, list, "color=blue,black,brown"},
		{"cookie", "form", true, object, "R=100; G=200; B=150"},
	} {
		path := "/x"
		if c.in == "path" {
			path = "/x/{color}"
		}
		parameter, err := json.Marshal(map[string]any{"name": "color", "in": c.in, "required": true, "style": c.style, "explode": c.explode, "schema": map[string]any{}})
		if err != nil {
			t.Fatal(err)
		}
		s := service(t, path, `{"get":{"parameters":[`+string(parameter)+`],"responses":{}}}`)
		r, err := s.only(t).request(context.Background(), s.Base, json.RawMessage(`{"color":`+c.value+`}`))
		if err != nil {
			t.Fatal(c, err)
		}
		got := map[string]string{
			"path": strings.TrimPrefix(r.URL.EscapedPath(), "/v1/x/"), "query": r.URL.RawQuery,
			"header": r.Header.Get("Color"), "cookie": r.Header.Get("Cookie"),
		}[c.in]
		if got != c.want {
			t.Errorf("%s %s explode=%v %s: %q, want %q", c.in, c.style, c.explode, c.value, got, c.want)
		}
	}
}

func TestAllowReserved(t *testing.T) {
	s := service(t, "/x", `{"get":{"parameters":[{"name":"q","in":"query","allowReserved":true,"schema":{"type":"string"}}],"responses":{}}}`)
	r, err := s.only(t).request(context.Background(), s.Base, json.RawMessage(`{"q":"a/b?c:d&e=f#g h"}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := "q=a/b?c:d%26e%3Df%23g%20h"; r.URL.RawQuery != want {
		t.Errorf("query %q, want %q", r.URL.RawQuery, want)
	}
}

// TestValuesStayInTheirPlace sends values that would change the request if
// they were not escaped.
func TestValuesStayInTheirPlace(t *testing.T) {
	s := service(t, "/repos/{owner}/issues", `{"get":{"parameters":[
		{"name":"owner","in":"path","required":true,"schema":{"type":"string"}},
		{"name":"X-Trace","in":"header","schema":{"type":"string"}}],"responses":{}}}`)
	o := s.only(t)
	for _, value := range []string{"../admin", "a/b", "a%2fb", "a?b", "a#b", "a;b", "a b", "ä", "http://evil.example", "@evil.example", "a\\b", "...", "\x00", "\r\nX: y"} {
		raw, err := json.Marshal(map[string]string{"owner": value})
		if err != nil {
			t.Fatal(err)
		}
		r, err := o.request(context.Background(), s.Base, raw)
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		parts := strings.Split(r.URL.EscapedPath(), "/")
		plain, err := url.PathUnescape(parts[3])
		if r.URL.Host != "service.example" || r.URL.RawQuery != "" || r.URL.Fragment != "" || len(parts) != 5 || err != nil || plain != value {
			t.Errorf("%q became %s", value, r.URL)
		}
	}
	for _, value := range []string{".", "..", ""} {
		raw, err := json.Marshal(map[string]string{"owner": value})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.request(context.Background(), s.Base, raw); err == nil {
			t.Errorf("%q is accepted as a part of the path", value)
		}
	}
	if _, err := o.request(context.Background(), s.Base, json.RawMessage(`{"owner":"a","X-Trace":"a\r\nHost: b"}`)); err == nil {
		t.Error("a line break in a header is accepted")
	}
	if _, err := o.request(context.Background(), s.Base, json.RawMessage(`{"owner":"a","nonsense":1}`)); err == nil {
		t.Error("an unknown argument is accepted")
	}
}

func sent(t *testing.T, s *Service, arguments string) (*http.Request, string) {
	t.Helper()
	r, err := s.only(t).request(context.Background(), s.Base, json.RawMessage(arguments))
	if err != nil {
		t.Fatal(err)
	}
	if r.Body == nil {
		return r, ""
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(content)
}

func TestRequestBodies(t *testing.T) {
	post := func(mediaType, content string) *Service {
		return service(t, "/x/{id}", `{"post":{"parameters":[{"name":"id","in":"path","required":true,"schema":{}}],
			"requestBody":{"required":true,"content":{"`+mediaType+`":`+content+`}},"responses":{}}}`)
	}
	const fields = `{"schema":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},"file":{"type":"string","format":"binary"}}}}`

	r, content := sent(t, post("application/json", fields), `{"id":"p","body_id":12345678901234567890,"tags":["a"]}`)
	if want := `{"id":12345678901234567890,"tags":["a"]}`; content != want || r.URL.Path != "/v1/x/p" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s, want %s", r.URL, content, want)
	}
	_, content = sent(t, post("application/x-www-form-urlencoded", fields), `{"id":"p","body_id":1,"tags":["a b","&"]}`)
	if want := "id=1&tags=a+b&tags=%26"; content != want {
		t.Errorf("form %q, want %q", content, want)
	}
	r, content = sent(t, post("multipart/form-data", fields), `{"id":"p","body_id":1,"file":"AAEC"}`)
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	form, err := multipart.NewReader(strings.NewReader(content), params["boundary"]).ReadForm(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if form.Value["id"][0] != "1" || form.File["file"][0].Size != 3 {
		t.Errorf("multipart %v", form)
	}
	if _, content = sent(t, post("application/octet-stream", `{}`), `{"id":"p","body":"AAEC"}`); content != "\x00\x01\x02" {
		t.Errorf("binary %q", content)
	}
	if _, content = sent(t, post("text/plain", `{"schema":{"type":"string"}}`), `{"id":"p","body":"hello"}`); content != "hello" {
		t.Errorf("text %q", content)
	}
	if _, content = sent(t, post("application/json", `{"schema":{"type":"array","items":{"type":"integer"}}}`), `{"id":"p","body":[1, 2]}`); content != "[1, 2]" {
		t.Errorf("array %q", content)
	}
}
