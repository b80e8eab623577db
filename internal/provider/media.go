package provider

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// imageTypes are the image types that every provider with image support
// accepts.
var imageTypes = words{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// maxImage bounds the base64 data of one image that Anthropic accepts, also
// through Bedrock.
const maxImage = 5 << 20

// media parses a block with data. A conversation cannot continue once a
// provider has rejected one of its blocks, so small errors are corrected: other
// base64 encodings, and a MIME type that contradicts the first bytes.
func media(kind PartKind, data, mimeType, uri string) Part {
	p := Part{Kind: kind, Data: plainBase64(data), MIMEType: mimeType, Name: uri[strings.LastIndexByte(uri, '/')+1:]}
	if seen := p.detectedType(); p.Kind == Image && imageTypes[seen] {
		p.MIMEType = seen
	}
	what := string(kind)
	for _, more := range []string{p.MIMEType, uri} {
		if more != "" {
			what += " " + more
		}
	}
	if p.Data == "" {
		p.Text = fmt.Sprintf("[%s: not shown, its data is not base64]", what)
	} else {
		p.Text = fmt.Sprintf("[%s, %s: cannot be shown here]", what, size(base64.StdEncoding.DecodedLen(len(p.Data))))
	}
	return p
}

// detectedType returns the MIME type detected from the first bytes of the part,
// or "" if they are not base64.
func (p Part) detectedType() string {
	const enough = 64
	head, err := base64.StdEncoding.DecodeString(p.Data[:min(len(p.Data), enough)])
	if err != nil {
		return ""
	}
	return http.DetectContentType(head)
}

// matchesMIMEType reports whether the bytes of an image or a PDF match the
// declared type. Providers check this and reject the whole request if not.
func (p Part) matchesMIMEType() bool {
	return !imageTypes[p.MIMEType] && p.MIMEType != "application/pdf" || p.detectedType() == p.MIMEType
}

// plainBase64 converts data to standard base64 with padding, which all
// providers accept, or returns "" if it is not base64. The data may be a data
// URL, contain white space, or use the URL-safe alphabet. It is checked but not
// decoded, so that large images cost little.
func plainBase64(data string) string {
	if strings.HasPrefix(data, "data:") {
		_, data, _ = strings.Cut(data, ";base64,")
	}
	if strings.ContainsAny(data, " \r\n\t-_") {
		data = strings.NewReplacer(" ", "", "\r", "", "\n", "", "\t", "", "-", "+", "_", "/").Replace(data)
	}
	digits := strings.TrimRight(data, "=")
	for i := range len(digits) {
		if c := digits[i]; !letter(rune(c)) && !('0' <= c && c <= '9') && c != '+' && c != '/' {
			return ""
		}
	}
	switch len(digits) % 4 {
	case 1:
		return ""
	case 0:
		return digits
	}
	return digits + "=="[len(digits)%4-2:]
}

func size(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
