package httperr

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"junctor/internal/tool"
)

// ReadBody reads the body of a request that holds JSON, up to limit bytes. A
// body that is too large, breaks off or is not valid UTF-8 is a [tool.Error].
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
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
