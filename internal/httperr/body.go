package httperr

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"junctor/internal/tool"
)

// trustedLength is how much of an announced length is allocated before the
// bytes have come.
const trustedLength = 1 << 20

// ReadBody reads the body of a request that holds JSON. Its size is bounded by
// an [http.MaxBytesReader] before. A body that is too large, breaks off or is
// not valid UTF-8 is a [tool.Error].
func ReadBody(r *http.Request) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(int(min(max(r.ContentLength, 0), trustedLength)) + bytes.MinRead) // which reads the end without growing
	_, err := buf.ReadFrom(r.Body)
	data := buf.Bytes()
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the body is larger than %d bytes (limits.maxBodyBytes)", tooLarge.Limit)}
	}
	if err != nil {
		return nil, &tool.Error{Kind: tool.InvalidRequest, Msg: "the body could not be read to its end", Err: err}
	}
	if !utf8.Valid(data) {
		return nil, &tool.Error{Kind: tool.ParseFailed, Msg: "the body is not valid UTF-8; send JSON in UTF-8"}
	}
	return data, nil
}
