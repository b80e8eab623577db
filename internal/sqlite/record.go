package sqlite

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"iter"
	"slices"
	"unsafe"

	"junctor/internal/store"
)

// A record in a journal consists of the length and the checksum of its fields,
// four bytes each, and the fields, encoded as in a block.
const (
	recordHead    = 8
	recordVersion = 2
)

// castagnoli is the table of the polynomial for which processors have an
// instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is a call encoded for a block.
type record struct {
	group         group
	session       string
	at, took      int64 // microseconds
	args, results uint64
	ids           string // id, request id, parent, trace id
	body          string // stages, error, arguments, result
}

// encodeRecord encodes a call for the journal, into b if it is large enough.
func encodeRecord(b []byte, c *store.Call) []byte {
	b = slices.Grow(b[:0], 512+len(c.Arguments)+len(c.Result)+len(c.Error))
	b = append(b[:recordHead], recordVersion)
	b = binary.AppendVarint(b, micros(c.Time))
	for _, n := range [3]int64{c.Duration.Microseconds(), int64(c.ArgBytes), int64(c.ResultBytes)} {
		b = binary.AppendUvarint(b, uint64(max(n, 0)))
	}
	g := groupOf(c)
	for _, name := range g.names() {
		b = appendText(b, *name)
	}
	b = appendText(b, c.Session)
	ids := [4]string{c.ID, c.RequestID, c.Parent, c.TraceID}
	size := 0
	for _, id := range ids {
		size += uvarintLen(len(id)) + len(id)
	}
	b = binary.AppendUvarint(b, uint64(size))
	for _, id := range ids {
		b = appendText(b, id)
	}
	var stages [160]byte // usually large enough
	b = appendText(b, c.Stages.Append(stages[:0]))
	b = appendText(b, c.Error)
	b = appendText(b, c.Arguments)
	b = appendText(b, c.Result)
	return finish(b)
}

// finish fills in the length and the checksum before the fields of a record.
func finish(b []byte) []byte {
	body := b[recordHead:]
	binary.LittleEndian.PutUint32(b, uint32(len(body)))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(body, castagnoli))
	return b
}

// newRecord encodes a call for a block.
func newRecord(c *store.Call) (record, error) {
	return decodeRecord(string(encodeRecord(nil, c)[recordHead:]))
}

func uvarintLen(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// recordSize returns the size of the record that begins with head, or 0 if head
// is too short to have it.
func recordSize(head []byte) int64 {
	if len(head) < recordHead {
		return 0
	}
	return recordHead + int64(binary.LittleEndian.Uint32(head))
}

// journalRecord is one record of a journal: its size and its content, or the error
// of decoding it.
type journalRecord struct {
	size int64
	record
	err error
}

// records yields consecutive records, up to the first that is damaged or
// incomplete. They refer to b, which must not change while they are used. salt
// is that of their journal.
func records(b []byte, salt uint32) iter.Seq[journalRecord] {
	return func(yield func(journalRecord) bool) {
		text := unsafe.String(unsafe.SliceData(b), len(b)) // not a copy, which would cost as much as decoding
		for {
			size := recordSize(b)
			if size <= recordHead || size > int64(len(b)) {
				return
			}
			if crc32.Checksum(b[recordHead:size], castagnoli)^salt != binary.LittleEndian.Uint32(b[4:]) {
				return
			}
			j := journalRecord{size: size}
			j.record, j.err = decodeRecord(text[recordHead:size])
			if !yield(j) {
				return
			}
			b, text = b[size:], text[size:]
		}
	}
}

var errRecord = errors.New("the record's fields are not those of a call")

func decodeRecord(body string) (record, error) {
	if body == "" {
		return record{}, errRecord
	}
	if body[0] != recordVersion {
		return decodeOldRecord(body)
	}
	r := reader{b: body[1:]}
	rec := record{at: r.signed(), took: int64(r.number()), args: r.number(), results: r.number()}
	for _, name := range rec.group.names() {
		*name = r.text()
	}
	rec.session = r.text()
	rec.ids = r.text()
	rec.body = r.b
	ids, parts := reader{b: rec.ids}, reader{b: rec.body}
	ids.fourTexts()
	parts.fourTexts()
	if r.bad || ids.bad || parts.bad || ids.b != "" || parts.b != "" {
		return record{}, errRecord
	}
	return rec, nil
}

// decodeOldRecord decodes a record of a Junctor that stored calls as rows: each
// field is a letter for its type followed by its value.
func decodeOldRecord(body string) (record, error) {
	r := reader{b: body}
	number := func() int64 {
		if r.typeByte() != 'i' {
			r.bad = true
		}
		return r.signed()
	}
	text := func() string {
		switch r.typeByte() {
		case 's':
			return r.text()
		case 'n':
			return ""
		}
		r.bad = true
		return ""
	}
	var rec record
	g := &rec.group
	id := text()
	rec.at, rec.took = number(), max(number(), 0)
	for _, s := range [...]*string{&g.status, &g.server, &g.tool, &g.method, &g.face, &g.caller, &rec.session, &g.kind} {
		*s = text()
	}
	trace := text()
	g.node = text()
	rec.results = uint64(max(number(), 0))
	var ids, parts []byte
	for _, s := range [4]string{id, "", "", trace} {
		ids = appendText(ids, s)
	}
	for range 4 { // stages, error, arguments, result
		parts = appendText(parts, text())
	}
	rec.ids, rec.body = string(ids), string(parts)
	if r.bad || r.b != "" {
		return record{}, errRecord
	}
	return rec, nil
}

func (r *reader) typeByte() byte {
	if r.b == "" {
		r.bad = true
		return 0
	}
	l := r.b[0]
	r.b = r.b[1:]
	return l
}
