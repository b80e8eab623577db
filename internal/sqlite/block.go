package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"

	"junctor/internal/store"
)

// Bounds of a block, whichever is reached first. One record may be larger.
const (
	blockRecords = 512
	blockBytes   = 256 << 10
	blockSpan    = int64(time.Hour / time.Microsecond) // so that retention is at most an hour late
	blockVersion = 1
)

// block is a run of records with consecutive numbers, one row of the table. Its
// three parts serve different queries:
//
//	head  each distinct name, each distinct group of names, and a column for
//	      each number: what filters and statistics need
//	ids   the id, request id, parent and trace id of each record
//	body  compressed: stages, error, arguments and result of each record
//
// A large block also has a textFilter, in a separate table.
type block struct {
	n            int
	since, until int64 // the earliest and the latest time, in microseconds
	head         []byte
	ids          []byte
	body         []byte
	filter       []byte // nil for none
}

// group is the set of fields that many records share.
type group struct {
	server, tool, method, face, caller, callerName, node, status, kind string
}

func (g *group) names() [9]*string {
	return [9]*string{&g.server, &g.tool, &g.method, &g.face, &g.caller, &g.callerName, &g.node, &g.status, &g.kind}
}

func groupOf(c *store.Call) group {
	return group{c.Server, c.Tool, c.Method, c.Face, c.Caller, c.CallerName, c.Node, string(c.Status), c.Kind}
}

// blockWriter collects records for a block.
type blockWriter struct {
	index    map[string]uint64 // of a name
	names    []byte
	groups   map[group]uint64
	groupIDs []byte
	last     group
	lastID   uint64

	n            int
	since, until int64
	at           int64     // time of the last record
	columns      [6][]byte // group, time, duration, session, size of arguments, of result
	ids          []byte
	body         []byte
	packed       []byte // buffer for the compressed body
	filter       textFilter
}

// full reports whether a record of the given time should begin a new block.
func (w *blockWriter) full(at int64) bool {
	return w.n >= blockRecords || len(w.body)+len(w.ids) >= blockBytes ||
		w.n > 0 && max(w.until, at)-min(w.since, at) > blockSpan
}

func (w *blockWriter) add(r *record) {
	if w.n == 0 {
		w.since, w.until = r.at, r.at
	}
	w.since, w.until = min(w.since, r.at), max(w.until, r.at)
	column := func(i int, v uint64) { w.columns[i] = binary.AppendUvarint(w.columns[i], v) }
	column(0, w.group(r.group))
	w.columns[1] = binary.AppendVarint(w.columns[1], r.at-w.at)
	column(2, uint64(r.took))
	column(3, w.name(r.session))
	column(4, r.args)
	column(5, r.results)
	w.at = r.at
	w.ids = append(w.ids, r.ids...)
	w.body = append(w.body, r.body...)
	w.n++
}

func (w *blockWriter) group(g group) uint64 {
	if w.n > 0 && g == w.last {
		return w.lastID
	}
	id, ok := w.groups[g]
	if !ok {
		for _, name := range g.names() {
			w.groupIDs = binary.AppendUvarint(w.groupIDs, w.name(*name))
		}
		if w.groups == nil {
			w.groups = map[group]uint64{}
		}
		id = uint64(len(w.groups))
		w.groups[g] = id
	}
	w.last, w.lastID = g, id
	return id
}

func (w *blockWriter) name(s string) uint64 {
	id, ok := w.index[s]
	if !ok {
		if w.index == nil {
			w.index = map[string]uint64{}
		}
		id = uint64(len(w.index))
		w.index[s] = id
		w.names = appendText(w.names, s)
	}
	return id
}

// take returns the block and starts the next one.
func (w *blockWriter) take() block {
	head := append(make([]byte, 0, 64+len(w.names)+len(w.groupIDs)+12*w.n), blockVersion)
	head = binary.AppendUvarint(head, uint64(len(w.index)))
	head = append(head, w.names...)
	head = binary.AppendUvarint(head, uint64(len(w.groups)))
	head = append(head, w.groupIDs...)
	head = binary.AppendUvarint(head, uint64(w.n))
	for _, column := range w.columns {
		head = append(head, column...)
	}
	b := block{n: w.n, since: w.since, until: w.until, head: head, ids: slices.Clone(w.ids)}
	w.packed = s2.Encode(w.packed[:cap(w.packed)], w.body)
	b.body = slices.Clone(w.packed)
	if len(w.body) >= minFiltered {
		clear(w.filter[:])
		for _, texts := range [][]byte{w.names, w.ids, w.body} {
			w.filter.add(texts)
		}
		b.filter = w.filter.bytes()
	}
	w.reset()
	return b
}

func (w *blockWriter) reset() {
	clear(w.index)
	clear(w.groups)
	w.names, w.groupIDs, w.ids, w.body = w.names[:0], w.groupIDs[:0], w.ids[:0], w.body[:0]
	if cap(w.body) > 4*blockBytes {
		w.body, w.packed = nil, nil
	}
	for i := range w.columns {
		w.columns[i] = w.columns[i][:0]
	}
	w.n, w.at, w.last = 0, 0, group{}
}

func appendText[T string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errBlock = errors.New("a block of the call log is damaged")

// blockHead is the decoded head of a block.
type blockHead struct {
	names    []string
	groups   []group
	group    []uint32
	times    []int64
	took     []int64 // microseconds
	sessions []uint32
	args     []int64
	results  []int64
}

// decodeHead decodes a head into h, which may be reused. Unless all is set, it
// omits the last three columns.
func decodeHead(raw []byte, h *blockHead, all bool) error {
	if len(raw) == 0 || raw[0] != blockVersion {
		return fmt.Errorf("%w, or is of a newer Junctor", errBlock)
	}
	r := reader{b: string(raw[1:])}
	h.names, h.groups = h.names[:0], h.groups[:0]
	for range r.count() {
		h.names = append(h.names, r.text())
	}
	for range r.count() {
		var g group
		for _, name := range g.names() {
			i := r.index(len(h.names))
			if r.bad {
				return errBlock
			}
			*name = h.names[i]
		}
		h.groups = append(h.groups, g)
	}
	n := r.count()
	h.group, h.times, h.took = h.group[:0], h.times[:0], h.took[:0]
	for range n {
		h.group = append(h.group, uint32(r.index(len(h.groups))))
	}
	var at int64
	for range n {
		at += r.signed()
		h.times = append(h.times, at)
	}
	for range n {
		h.took = append(h.took, int64(r.number()))
	}
	h.sessions, h.args, h.results = h.sessions[:0], h.args[:0], h.results[:0]
	if !all {
		n = 0
	}
	for range n {
		h.sessions = append(h.sessions, uint32(r.index(len(h.names))))
	}
	for _, column := range []*[]int64{&h.args, &h.results} {
		for range n {
			*column = append(*column, int64(r.number()))
		}
	}
	if r.bad {
		return errBlock
	}
	return nil
}

// call returns the i-th record with the fields that are in the head.
func (h *blockHead) call(seq int64, i int) store.Call {
	g := &h.groups[h.group[i]]
	return store.Call{
		Seq: seq + int64(i), Time: moment(h.times[i]), Duration: time.Duration(h.took[i]) * time.Microsecond,
		Server: g.server, Tool: g.tool, Method: g.method, Face: g.face, Caller: g.caller, CallerName: g.callerName,
		Node: g.node, Status: store.Status(g.status), Kind: g.kind,
		Session: h.names[h.sessions[i]], ArgBytes: int(h.args[i]), ResultBytes: int(h.results[i]),
	}
}

// texts splits the ids or the body of a block with n records into four texts for
// each record.
func texts(raw string, n int) ([][4]string, error) {
	if n > len(raw) {
		return nil, errBlock
	}
	r := reader{b: raw}
	out := make([][4]string, n)
	for i := range out {
		out[i] = r.fourTexts()
	}
	if r.bad || r.b != "" {
		return nil, errBlock
	}
	return out, nil
}

func (r *reader) fourTexts() (out [4]string) {
	for i := range out {
		out[i] = r.text()
	}
	return out
}

// reader decodes values from the front of b. After the first incomplete value it
// is bad and returns zeros.
type reader struct {
	b   string
	bad bool
}

func (r *reader) number() uint64 {
	var v uint64
	for i := 0; i < len(r.b) && i < binary.MaxVarintLen64; i++ {
		c := r.b[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.b = r.b[i+1:]
			return v
		}
	}
	r.bad, r.b = true, ""
	return 0
}

func (r *reader) signed() int64 {
	v := r.number()
	return int64(v>>1) ^ -int64(v&1)
}

// count reads the number of values or bytes that follow. It is bad if more than
// the rest of b, because each takes at least one byte.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, ""
		return 0
	}
	return int(n)
}

// index reads an index into n values. If it is out of range, r is bad and the
// result 0.
func (r *reader) index(n int) int {
	v := r.number()
	if v >= uint64(n) {
		r.bad, r.b = true, ""
		return 0
	}
	return int(v)
}

func (r *reader) text() string {
	n := r.count()
	s := r.b[:n]
	r.b = r.b[n:]
	return s
}
