package attach

import (
	"errors"
	"io"
)

// Pipe returns the two ends of an in-process stream. As with a socket, each
// direction can be closed separately.
func Pipe() (near, far *PipeEnd) {
	toFar, fromNear := io.Pipe()
	toNear, fromFar := io.Pipe()
	return &PipeEnd{toNear, fromNear}, &PipeEnd{toFar, fromFar}
}

// PipeEnd is one end of a Pipe.
type PipeEnd struct {
	r *io.PipeReader
	w *io.PipeWriter
}

// Read implements io.Reader.
func (p *PipeEnd) Read(b []byte) (int, error) { return p.r.Read(b) }

// Write implements io.Writer.
func (p *PipeEnd) Write(b []byte) (int, error) { return p.w.Write(b) }

// CloseWrite closes this direction and leaves the other one open.
func (p *PipeEnd) CloseWrite() error { return p.w.Close() }

// Close closes both directions.
func (p *PipeEnd) Close() error { return errors.Join(p.w.Close(), p.r.Close()) }
