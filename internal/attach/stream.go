package attach

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// greeting starts a connection for a stream. It is followed by a StreamRequest
// in JSON on the same line; the reply is one line, too. Other connections are
// HTTP.
const greeting = "JUNCTOR/1 "

// maxLine bounds the lines of the greeting.
const maxLine = 4096

// handshakeTimeout bounds the handshake on both sides.
const handshakeTimeout = 10 * time.Second

// StreamRequest selects the MCP view of a stream.
type StreamRequest struct {
	Mode   string `json:"mode,omitempty"`
	Server string `json:"server,omitempty"`
	// Profile restricts the local user.
	Profile string `json:"profile,omitempty"`
	// Yield asks the gateway to give up the socket.
	Yield bool `json:"yield,omitempty"`
}

// reply is the response to a StreamRequest.
type reply struct {
	OK        bool   `json:"ok"`
	Version   string `json:"version,omitempty"`
	Temporary bool   `json:"temporary,omitempty"`
	Message   string `json:"message,omitempty"`
	// Profile is the requested profile. A gateway that does not support
	// profiles omits it and would not restrict the stream.
	Profile string `json:"profile,omitempty"`
}

// Refused is the error if a running gateway refuses the request.
type Refused struct{ Message string }

func (e *Refused) Error() string { return e.Message }

// Open opens a stream to the gateway that listens at path. The error is
// ErrNotRunning if there is no gateway and *Refused if it refuses the request.
func Open(ctx context.Context, path string, req StreamRequest) (*Conn, error) {
	c, err := Dial(ctx, path)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	r := bufio.NewReader(c)
	answer, err := requestStream(c, r, req)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return &Conn{Conn: c, Temporary: answer.Temporary, r: r}, nil
}

// Yield asks the gateway that listens at path to give up the socket. Only a
// temporary one does; others reply with *Refused.
func Yield(ctx context.Context, path string) error {
	c, err := Open(ctx, path, StreamRequest{Yield: true})
	if err != nil {
		return err
	}
	return c.Close()
}

// Conn is a stream to or from a gateway.
type Conn struct {
	net.Conn
	Temporary bool          // the gateway at the other end is temporary
	r         *bufio.Reader // has buffered the first bytes
}

// Read implements io.Reader.
func (c *Conn) Read(b []byte) (int, error) { return c.r.Read(b) }

// CloseWrite closes the write direction and leaves the other one open.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// requestStream sends the request for a stream and returns the reply.
func requestStream(c net.Conn, r *bufio.Reader, req StreamRequest) (answer reply, err error) {
	line, err := json.Marshal(req)
	if err != nil {
		return answer, err
	}
	_ = c.SetDeadline(time.Now().Add(handshakeTimeout))
	if _, err := io.WriteString(c, greeting+string(line)+"\n"); err != nil {
		return answer, ErrNotRunning
	}
	text, err := readLine(r)
	if err != nil {
		return answer, ErrNotRunning
	}
	_ = c.SetDeadline(time.Time{})
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, &Refused{"the running gateway is a different version"}
	}
	if !answer.OK {
		return answer, &Refused{answer.Message}
	}
	if answer.Profile != req.Profile {
		return answer, &Refused{"the running gateway is a version without profiles; restart it, or use --standalone"}
	}
	return answer, nil
}

// readLine reads a line of at most maxLine bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errors.New("the greeting is too long")
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// readStreamRequest reads the rest of a greeting.
func readStreamRequest(r *bufio.Reader) (StreamRequest, error) {
	line, err := readLine(r)
	if err != nil {
		return StreamRequest{}, err
	}
	text, ok := strings.CutPrefix(string(line), greeting)
	if !ok {
		return StreamRequest{}, errors.New("this gateway speaks " + strings.TrimSpace(greeting))
	}
	var req StreamRequest
	if err := json.Unmarshal([]byte(text), &req); err != nil {
		return StreamRequest{}, fmt.Errorf("read the greeting: %w", err)
	}
	return req, nil
}
