package attach

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Relay relays the messages of one MCP client to a gateway and survives its
// restart. It then repeats the client's handshake on the next gateway and
// fails requests in flight with an error, and the client can continue. It
// inspects the envelopes of messages and changes none.
type Relay struct {
	// Reconnect returns a connection to the next gateway after one has ended.
	// An error ends the relay. ctx is canceled when the client has
	// disconnected; it bounds the attempt, not the lifetime of the connection.
	Reconnect func(ctx context.Context) (io.ReadWriteCloser, error)

	mu         sync.Mutex
	out        *bufio.Writer
	inFlight   map[mcp.ID]bool // requests without a response
	opening    []byte          // the client's initialize request
	openingID  mcp.ID
	opened     []byte // the client's notifications/initialized
	swallow    bool   // drop the response to the repeated initialize
	sinceAgain bool   // the client has not been notified of the restart yet
}

// Run relays over conn, and over the connections that replace it, until the
// client closes its input, ctx is done or no gateway is available.
func (r *Relay) Run(ctx context.Context, conn io.ReadWriteCloser, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.out, r.inFlight = bufio.NewWriter(out), map[mcp.ID]bool{}
	lines := make(chan []byte)
	present, left := context.WithCancel(ctx)
	defer left()
	go func() {
		defer left()
		r.read(ctx, in, lines)
	}()
	for again := false; ; again = true {
		ended, err := r.serve(ctx, conn, lines, again)
		_ = conn.Close()
		if ended || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.failPending(); err != nil {
			return err
		}
		if conn, err = r.Reconnect(present); err != nil {
			if present.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// read splits the client's input into lines. It closes lines at the end of the
// input.
func (r *Relay) read(ctx context.Context, in io.Reader, lines chan<- []byte) {
	defer close(lines)
	br := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readPiece(br)
		if len(line) > 0 {
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readPiece returns a line with its terminator, or a part of a line that
// exceeds the maximum message size, for which the gateway then reports the
// error.
func readPiece(br *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		line = append(line, part...)
		if err == nil || !errors.Is(err, bufio.ErrBufferFull) || len(line) > mcp.DefaultMaxBytes {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = nil
			}
			return line, err
		}
	}
}

// serve relays over one connection. ended reports that the client is done;
// otherwise a nil error means that the gateway's connection has ended.
func (r *Relay) serve(ctx context.Context, conn io.ReadWriteCloser, lines <-chan []byte, again bool) (ended bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if again && !r.reopen(conn) {
		return false, nil
	}
	down := make(chan error, 1)
	go func() { down <- r.forwardResponses(conn) }()
	for {
		select {
		case err := <-down:
			return false, err
		case line, ok := <-lines:
			if !ok {
				if half, ok := conn.(interface{ CloseWrite() error }); ok {
					_ = half.CloseWrite()
				} else {
					_ = conn.Close()
				}
				return true, <-down
			}
			r.trackRequest(line)
			if _, err := conn.Write(line); err != nil {
				_ = conn.Close()
				<-down
				return false, nil
			}
		}
	}
}

// trackRequest records what is needed from a client's message in case the
// gateway ends.
func (r *Relay) trackRequest(line []byte) {
	m, err := mcp.Decode(line, mcp.Limits{})
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.IsRequest():
		r.inFlight[m.ID] = true
		if m.Method == mcp.MethodInitialize {
			r.opening, r.openingID = line, m.ID
		}
	case m.Method == mcp.MethodInitialized:
		r.opened = line
	case m.Method == mcp.MethodCancelled: // may remain unanswered
		delete(r.inFlight, mcp.ID(rawjson.Field(m.Params, "requestId")))
	}
}

// reopen repeats the client's handshake with a new gateway.
func (r *Relay) reopen(conn io.Writer) bool {
	r.mu.Lock()
	opening, opened := r.opening, r.opened
	r.swallow = opening != nil
	r.sinceAgain = opened != nil
	r.mu.Unlock()
	for _, line := range [][]byte{opening, opened} {
		if line != nil {
			if _, err := conn.Write(line); err != nil {
				return false
			}
		}
	}
	return true
}

// forwardResponses writes the messages of the gateway to the client until the
// gateway disconnects (nil) or the client stops reading.
func (r *Relay) forwardResponses(conn io.Reader) error {
	br := bufio.NewReaderSize(conn, 64<<10)
	for {
		line, err := readPiece(br)
		if len(line) > 0 && line[len(line)-1] == '\n' { // an incomplete line is not a message
			if err := r.writeLine(line); err != nil {
				return fmt.Errorf("write to the client: %w", err)
			}
		}
		if err != nil {
			return nil
		}
	}
}

func (r *Relay) writeLine(line []byte) error {
	m, err := mcp.Decode(line, mcp.Limits{})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && m.IsResponse() {
		delete(r.inFlight, m.ID)
		if r.swallow && m.ID == r.openingID {
			r.swallow = false
			if !r.sinceAgain {
				return nil
			}
			// The client may have cached lists of the previous gateway.
			r.sinceAgain = false
			return r.write(mcp.AppendMessage(nil, &mcp.Message{Method: mcp.MethodToolsChanged}), true)
		}
	}
	return r.write(line, false)
}

func (r *Relay) write(line []byte, end bool) error {
	if _, err := r.out.Write(line); err != nil {
		return err
	}
	if end {
		if err := r.out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return r.out.Flush()
}

// failPending responds to the requests in flight with an error after the
// gateway has ended.
func (r *Relay) failPending() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := mcp.ToolError(&tool.Error{Kind: tool.Unavailable, Msg: "the gateway ended while this request was under way; it may have been carried out"})
	for id := range r.inFlight {
		delete(r.inFlight, id)
		if id == r.openingID && r.opened == nil {
			r.opening = nil // the client got an error and must start again
		}
		if err := r.write(mcp.AppendMessage(nil, &mcp.Message{ID: id, Error: lost}), true); err != nil {
			return err
		}
	}
	return nil
}
