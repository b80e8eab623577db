package openapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"junctor/internal/rawjson"
)

// request builds the HTTP request of a call. The caller has validated the
// arguments against the tool's schema. An argument that the operation does not
// use is an error.
func (o *operation) request(ctx context.Context, base *url.URL, arguments json.RawMessage) (*http.Request, error) {
	args := map[string]json.RawMessage{}
	for name, v := range rawjson.Members(arguments) {
		args[name] = v
	}
	path, query := o.path, ""
	header := http.Header{}
	var cookies []string
	for _, p := range o.parameters {
		raw, given := args[p.argument]
		delete(args, p.argument)
		if !given || string(raw) == "null" && p.in != "path" {
			if p.required {
				return nil, fmt.Errorf("argument %q is missing", p.argument)
			}
			continue
		}
		switch p.in {
		case "path":
			part, err := p.inPath(raw)
			if err != nil {
				return nil, err
			}
			path = strings.ReplaceAll(path, "{"+p.name+"}", part)
		case "query":
			if q := p.inQuery(raw); q != "" {
				query += "&" + q
			}
		case "header":
			v, err := p.inHeader(raw)
			if err != nil {
				return nil, err
			}
			header.Set(p.name, v)
		case "cookie":
			q := parameter{name: p.name, style: "form", explode: p.explode && len(raw) > 0 && raw[0] == '{', json: p.json}
			cookies = append(cookies, strings.ReplaceAll(q.inQuery(raw), "&", "; "))
		}
	}
	content, mediaType, err := o.content(args)
	if err != nil {
		return nil, err
	}
	for name := range args {
		return nil, fmt.Errorf("unknown argument %q", name)
	}
	target := strings.TrimSuffix(base.String(), "/") + path
	if query != "" {
		target += "?" + query[1:]
	}
	var reader io.Reader
	if mediaType != "" {
		reader = bytes.NewReader(content)
	}
	r, err := http.NewRequestWithContext(ctx, o.method, target, reader)
	if err != nil {
		return nil, err
	}
	if r.URL.Host != base.Host || r.URL.Scheme != base.Scheme {
		return nil, errors.New("the request would leave the host of the service")
	}
	r.Header = header
	r.Header.Set("Accept", o.accept)
	if mediaType != "" {
		r.Header.Set("Content-Type", mediaType)
	}
	if len(cookies) > 0 {
		r.Header.Set("Cookie", strings.Join(cookies, "; "))
	}
	return r, nil
}

// content returns the body and its media type, which is empty if there is no
// body. It removes the used arguments from args.
func (o *operation) content(args map[string]json.RawMessage) (content []byte, mediaType string, err error) {
	b := o.body
	if b == nil {
		return nil, "", nil
	}
	if b.argument != "" {
		raw, given := args[b.argument]
		delete(args, b.argument)
		if !given {
			if b.required {
				return nil, "", fmt.Errorf("argument %q is missing", b.argument)
			}
			return nil, "", nil
		}
		return b.whole(raw)
	}
	var given []field
	values := map[string]json.RawMessage{}
	for _, f := range b.fields {
		if raw, ok := args[f.argument]; ok {
			given = append(given, f)
			values[f.argument] = raw
			delete(args, f.argument)
		}
	}
	if len(given) == 0 && !b.required {
		return nil, "", nil
	}
	switch essence(b.mediaType) {
	case "multipart/form-data":
		return multipartBody(given, values)
	case "application/x-www-form-urlencoded":
		var out []string
		for _, f := range given {
			if q := f.style.inQuery(values[f.argument]); q != "" {
				out = append(out, q)
			}
		}
		return []byte(strings.ReplaceAll(strings.Join(out, "&"), "%20", "+")), b.mediaType, nil
	}
	dst := []byte{'{'}
	for _, f := range given {
		dst = rawjson.AppendComma(dst)
		dst = append(rawjson.AppendQuoted(dst, f.name), ':')
		dst = append(dst, values[f.argument]...)
	}
	return append(dst, '}'), b.mediaType, nil
}

// whole returns the body for a single argument.
func (b *body) whole(raw json.RawMessage) ([]byte, string, error) {
	mediaType := b.mediaType
	switch {
	case isJSON(mediaType):
		return raw, mediaType, nil
	case essence(mediaType) == "application/x-www-form-urlencoded":
		p := parameter{style: "form", explode: true}
		return []byte(p.inQuery(raw)), mediaType, nil
	case essence(mediaType) == "multipart/form-data":
		var fields []field
		values := map[string]json.RawMessage{}
		for name, v := range rawjson.Members(raw) {
			fields = append(fields, field{argument: name, name: name})
			values[name] = v
		}
		return multipartBody(fields, values)
	case strings.HasPrefix(mediaType, "text/"):
		return []byte(scalar(raw)), mediaType, nil
	}
	if strings.Contains(mediaType, "*") {
		mediaType = "application/octet-stream"
	}
	content, err := decodeBase64(b.argument, raw)
	return content, mediaType, err
}

func multipartBody(fields []field, values map[string]json.RawMessage) ([]byte, string, error) {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, f := range fields {
		parts := []json.RawMessage{values[f.argument]}
		if raw := parts[0]; len(raw) > 0 && raw[0] == '[' {
			parts = parts[:0]
			for e := range rawjson.Elements(raw) {
				parts = append(parts, e)
			}
		}
		for _, raw := range parts {
			if err := writePart(w, f, raw); err != nil {
				return nil, "", err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return buf.Bytes(), w.FormDataContentType(), nil
}

func writePart(w *multipart.Writer, f field, raw json.RawMessage) error {
	disposition := map[string]string{"name": f.name}
	content, mediaType := []byte(scalar(raw)), f.mediaType
	switch {
	case f.binary:
		disposition["filename"] = f.name
		if mediaType == "" || strings.Contains(mediaType, "*") || strings.Contains(mediaType, ",") {
			mediaType = "application/octet-stream"
		}
		var err error
		if content, err = decodeBase64(f.argument, raw); err != nil {
			return err
		}
	case mediaType == "" && len(raw) > 0 && raw[0] == '{':
		mediaType = "application/json"
	}
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", mime.FormatMediaType("form-data", disposition))
	if mediaType != "" {
		h.Set("Content-Type", mediaType)
	}
	part, err := w.CreatePart(h)
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	return err
}

func decodeBase64(argument string, raw json.RawMessage) ([]byte, error) {
	content, err := base64.StdEncoding.DecodeString(rawjson.FieldString(raw))
	if err != nil {
		return nil, fmt.Errorf("argument %q is not base64: %w", argument, err)
	}
	return content, nil
}
