package provider

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// imageTypes are the images that every provider with images takes.
var imageTypes = words{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// maxImage is the base64 that Anthropic takes of one image, also by way of
// Bedrock.
const maxImage = 5 << 20

// media reads a block with data. A conversation in which one such block is
// refused cannot go on, so small mistakes are corrected: other notations of
// base64, and a type that the first bytes contradict.
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

// detectedType is the type that the first bytes of a part tell.
func (p Part) detectedType() string {
	const enough = 64
	head, err := base64.StdEncoding.DecodeString(p.Data[:min(len(p.Data), enough)])
	if err != nil {
		return ""
	}
	return http.DetectContentType(head)
}

// matchesMIMEType reports whether the bytes of an image or a PDF are of the type
// that is declared. Providers look, and refuse the whole request.
func (p Part) matchesMIMEType() bool {
	return !imageTypes[p.MIMEType] && p.MIMEType != "application/pdf" || p.detectedType() == p.MIMEType
}

// plainBase64 returns data in the alphabet and with the padding that all
// providers read, or nothing when it is not base64: it may come as a data URL,
// in lines, or in the alphabet for URLs. It looks at the alphabet only, so a
// large image costs little.
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
