package mcpserver

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"junctor/internal/tool"
)

// hijackedStream writes a session's standalone stream to a connection hijacked from
// net/http. Most sessions keep one open and idle for hours; without net/http's
// two goroutines and buffers it costs about a fifth.
type hijackedStream struct {
	srv     *Server
	session *Session
	st      *eventStream
	reader  int
	conn    net.Conn

	mu     sync.Mutex // held while writing
	closed bool
	timer  *time.Timer
	unbind func() // stops waiting for the end of the credential
}

// hijackStream continues a response as a hijackedStream. It reports false when
// the connection cannot be hijacked, as with HTTP/2.
func (s *Server) hijackStream(res *response) bool {
	if res.r.ProtoMajor != 1 {
		return false
	}
	h := res.w.Header()
	setEventHeaders(h)
	conn, rw, err := http.NewResponseController(res.w).Hijack()
	if err != nil {
		return false
	}
	l := &hijackedStream{srv: s, session: res.session, st: res.st, reader: res.reader, conn: conn}
	l.mu.Lock() // until the stream is set up: the credential may end at any time
	defer l.mu.Unlock()
	l.unbind = tool.OnCredentialEnd(res.r.Context(), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.close()
	})
	res.session.enter() // for the stream, which outlives the request
	head := bytes.NewBufferString("HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nDate: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n")
	_ = h.Write(head) // into memory
	head.WriteString("\r\n")
	_ = conn.SetDeadline(time.Time{}) // the server may have set its own
	if rw.Reader.Buffered() > 0 || !l.write(appendChunk(head.Bytes(), []byte(": \n\n"))) {
		l.close()
		return true
	}
	l.timer = time.AfterFunc(s.opts.KeepAlive, l.keepAlive)
	res.st.listen(res.reader, func() { go l.flush() })
	go l.watch()
	return true
}

// watch waits until the caller disconnects. Callers send nothing on this
// connection.
func (l *hijackedStream) watch() {
	var b [1]byte
	_, _ = l.conn.Read(b[:])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close()
}

// keepAlive writes a comment event every Options.KeepAlive.
func (l *hijackedStream) keepAlive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if !l.write(appendChunk(nil, []byte(": \n\n"))) {
		l.close()
		return
	}
	l.timer.Reset(l.srv.opts.KeepAlive)
}

// flush writes the unread events of the stream.
func (l *hijackedStream) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	b := l.st.take(l.reader)
	var out []byte
	for i, e := range b.events {
		out = appendEvent(out, eventID(l.st.id, b.number+i), e.data)
	}
	if len(out) > 0 {
		out = appendChunk(nil, out)
	}
	if b.ended {
		out = append(out, "0\r\n\r\n"...)
	}
	if len(out) > 0 && !l.write(out) || b.lost || b.ended {
		l.close()
	}
}

func appendChunk(dst, data []byte) []byte {
	dst = strconv.AppendInt(dst, int64(len(data)), 16)
	return append(append(append(dst, "\r\n"...), data...), "\r\n"...)
}

// write writes data with the deadline of Options.WriteTimeout.
func (l *hijackedStream) write(data []byte) bool {
	_ = l.conn.SetWriteDeadline(time.Now().Add(l.srv.opts.WriteTimeout))
	_, err := l.conn.Write(data)
	return err == nil
}

// close closes the connection. l.mu is held.
func (l *hijackedStream) close() {
	if l.closed {
		return
	}
	l.closed = true
	l.unbind()
	if l.timer != nil {
		l.timer.Stop()
	}
	_ = l.conn.Close() // ends watch
	l.session.leave()
}

// listen makes the stream call f, which must not block, whenever it has events
// for the reader, until another reader takes over.
func (s *eventStream) listen(reader int, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reader != s.reader {
		go f() // it notices that the reader is replaced
		return
	}
	s.onEvent = f
	if len(s.events) > s.next-s.first || s.ended {
		f()
	}
}
