package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"
)

// events writes server-sent events and executes the scripted faults.
type events struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	reply Reply
	wire  wire
	sent  int
	over  bool
}

// send writes one event. Once the script has stopped the stream, it does
// nothing.
func (e *events) send(name string, data any) {
	if e.over {
		return
	}
	if e.reply.GapMS > 0 && e.sent > 0 && !e.s.wait(e.r, time.Duration(e.reply.GapMS)*time.Millisecond) {
		e.over = true
		return
	}
	raw, ok := data.(string)
	if !ok {
		b, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		raw = string(b)
	}
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	fmt.Fprintf(e.w, "data: %s\n\n", raw)
	if http.NewResponseController(e.w).Flush() != nil {
		e.over = true
		return
	}
	e.sent++
	switch {
	case e.reply.CutAfter > 0 && e.sent >= e.reply.CutAfter:
		panic(http.ErrAbortHandler)
	case e.reply.StallAfter > 0 && e.sent >= e.reply.StallAfter:
		e.over = true
		e.s.stall(e.r)
	case e.reply.BreakAfter > 0 && e.sent == e.reply.BreakAfter:
		e.wire.failInStream(e, Failure{Status: 529, Message: "Overloaded"})
		e.over = true
	}
}

func pieces(s string, n int) []string {
	if s == "" {
		return nil
	}
	var out []string
	start, count := 0, 0
	for i := 0; i < len(s); {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if count++; count == n {
			out = append(out, s[start:i])
			start, count = i, 0
		}
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}
