package httperr

import (
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// ReadBody reads the body of a request with JSON. An outer
// [http.MaxBytesReader] must limit its size. The error for a body that is too
// large, incomplete or not valid UTF-8 is a [tool.Error].
func ReadBody(r *http.Request) ([]byte, error) {
	data, err := mcp.ReadAll(r.Body, r.ContentLength, nil)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the body is larger than %d bytes (limits.maxBodyBytes)", tooLarge.Limit)}
	}
	if err != nil {
		return nil, &tool.Error{Kind: tool.InvalidRequest, Msg: "the body could not be read completely", Err: err}
	}
	if !utf8.Valid(data) {
		return nil, &tool.Error{Kind: tool.ParseFailed, Msg: "the body is not valid UTF-8; send JSON in UTF-8"}
	}
	return data, nil
}
