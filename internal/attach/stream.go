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

// A connection begins either like an HTTP request or with one line that asks
// for a stream: this word, and what is wanted as JSON. One line answers it.
const greeting = "JUNCTOR/1 "

// maxLine bounds the lines of the greeting.
const maxLine = 4096

// handshakeTimeout is how long either side may take to greet.
const handshakeTimeout = 10 * time.Second

// StreamRequest selects the MCP view of a stream.
type StreamRequest struct {
	Mode   string `json:"mode,omitempty"`
	Server string `json:"server,omitempty"`
	// Profile is the one that the local user is narrowed to.
	Profile string `json:"profile,omitempty"`
	// Yield asks the gateway to leave the socket to the one that asks.
	Yield bool `json:"yield,omitempty"`
}

// reply is the answer to a StreamRequest.
type reply struct {
	OK        bool   `json:"ok"`
	Version   string `json:"version,omitempty"`
	Temporary bool   `json:"temporary,omitempty"`
	Message   string `json:"message,omitempty"`
	// Profile is that of the request. A gateway that knows no profiles leaves
	// it out, and would serve everything.
	Profile string `json:"profile,omitempty"`
}

// Refused is the error of a gateway that is running but refuses the request.
type Refused struct{ Message string }

func (e *Refused) Error() string { return e.Message }

// Open asks the gateway that listens at path for a stream. The error is
// ErrNotRunning when no gateway runs and *Refused when it declines.
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

// Yield asks the gateway that listens at path to leave the socket to the caller.
// Only a temporary one does; the others answer with *Refused.
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
	Temporary bool          // the gateway at the other end is one of Options.Temporary
	r         *bufio.Reader // has looked at the first bytes
}

// Read implements io.Reader.
func (c *Conn) Read(b []byte) (int, error) { return c.r.Read(b) }

// CloseWrite says that nothing more will be written, and leaves the other
// direction open.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// requestStream asks for the stream.
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
		return answer, &Refused{"the running gateway is of another version"}
	}
	if !answer.OK {
		return answer, &Refused{answer.Message}
	}
	if answer.Profile != req.Profile {
		return answer, &Refused{"the running gateway is of a version without profiles; restart it, or use --standalone"}
	}
	return answer, nil
}

// readLine reads one line of bounded length.
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
