package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/klauspost/compress/s2"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// errStopScan stops a scan early.
var errStopScan = errors.New("enough")

// Limits of the number of blocks that one query looks up. A scan starts with
// few, because they often contain the first page of results.
const (
	minScanBlocks = 4
	maxScanBlocks = 256
)

// snapshot is a connection with a read transaction, which sees one state of the
// database.
type snapshot struct {
	ctx   context.Context
	conn  *sql.Conn
	parts map[string]*sql.Stmt
}

// snapshot runs f in a read transaction.
func (s *Store) snapshot(ctx context.Context, f func(*snapshot) error) error {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	t := &snapshot{ctx: ctx, conn: conn, parts: map[string]*sql.Stmt{}}
	defer func() {
		for _, st := range t.parts {
			_ = st.Close()
		}
		_, _ = conn.ExecContext(context.Background(), "ROLLBACK")
	}()
	return f(t)
}

// part calls use with one part of a block. use must not retain it.
func (t *snapshot) part(name string, seq int64, use func([]byte) error) error {
	st := t.parts[name]
	if st == nil {
		var err error
		if st, err = t.conn.PrepareContext(t.ctx, "SELECT "+name+" FROM call_blocks WHERE seq = ?"); err != nil {
			return err
		}
		t.parts[name] = st
	}
	rows, err := st.QueryContext(t.ctx, seq)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return cmp.Or(rows.Err(), errBlock)
	}
	var raw sql.RawBytes
	if err := rows.Scan(&raw); err != nil {
		return err
	}
	return use(raw)
}

// extent identifies a block.
type extent struct {
	seq      int64
	n        int
	head     []byte // nil if it has not been read
	excluded bool   // it does not contain the text of the query
}

// extents returns up to limit blocks after last that may have matching records,
// in the order of the query. It reads their heads too, because one query for
// each head would take longer than reading it, unless the query has a text,
// which excludes most blocks.
func (t *snapshot) extents(q store.CallQuery, last *extent, limit int) (out []extent, err error) {
	where, args := []string{"true"}, []any{}
	add := func(cond string, arg int64) { where, args = append(where, cond), append(args, arg) }
	if !q.Since.IsZero() {
		add("until >= ?", micros(q.Since))
	}
	if !q.Until.IsZero() {
		add("since < ?", micros(q.Until))
	}
	if q.AfterSeq > 0 {
		add("seq + n - 1 > ?", q.AfterSeq)
		add("seq > ?", q.AfterSeq-blockRecords)
	}
	if q.BeforeSeq > 0 {
		add("seq < ?", q.BeforeSeq)
	}
	beyond, order := "seq < ?", " ORDER BY seq DESC"
	if q.Oldest() {
		beyond, order = "seq > ?", " ORDER BY seq"
	}
	if last != nil {
		add(beyond, last.seq)
	}
	columns := "head, NULL"
	if q.Text != "" {
		columns = "NULL, (SELECT bits FROM call_filters WHERE seq = call_blocks.seq)"
	}
	rows, err := t.conn.QueryContext(t.ctx, "SELECT seq, n, "+columns+" FROM call_blocks WHERE "+strings.Join(where, " AND ")+order+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	text := newNeedle(q.Text).text
	for rows.Next() {
		var e extent
		var filter sql.RawBytes
		if err := rows.Scan(&e.seq, &e.n, &e.head, &filter); err != nil {
			return nil, err
		}
		e.excluded = !mayHave(filter, text)
		out = append(out, e)
	}
	return out, rows.Err()
}

// scan calls f with the blocks that may have matching records, in the order of
// the query, until f returns an error. It returns nil if that is errStopScan.
// numbers means that f does not need sessions and sizes.
func (s *Store) scan(ctx context.Context, q store.CallQuery, numbers bool, f func(*blockReader) error) error {
	s.flushAll(ctx)
	err := s.snapshot(ctx, func(t *snapshot) error {
		b := blockReader{tx: t, numbers: numbers && q.Session == ""}
		var last *extent
		for limit := minScanBlocks; ; limit = min(4*limit, maxScanBlocks) {
			page, err := t.extents(q, last, limit)
			if err != nil || len(page) == 0 {
				return err
			}
			last = &page[len(page)-1]
			whole := len(page) < limit
			if q.Text != "" {
				if page, err = t.withText(&b, page, q); err != nil {
					return err
				}
			}
			for _, e := range page {
				if err := b.open(e); err != nil {
					return err
				}
				if err := f(&b); err != nil {
					return err
				}
			}
			if whole {
				return nil
			}
		}
	})
	if errors.Is(err, errStopScan) {
		return nil
	}
	return err
}

// blockReader reads one block after another. It reads the parts of a block
// lazily.
type blockReader struct {
	tx *snapshot
	extent
	head    blockHead
	numbers bool // decode only groups, times and durations of the head

	idText  string      // as stored; "" until it is read
	idList  [][4]string // nil until it is read
	plain   []byte      // the body; empty until it is read
	content [][4]string // nil until it is read
	groupOK []bool

	groupText []bool // which matching groups have the text in a name
}

func (b *blockReader) open(e extent) error {
	b.extent = e
	b.idText, b.idList, b.plain, b.content = "", nil, b.plain[:0], nil
	read := func(raw []byte) error { return decodeHead(raw, &b.head, !b.numbers) }
	var err error
	if e.head != nil {
		err = read(e.head)
	} else {
		err = b.tx.part("head", b.seq, read)
	}
	if err == nil && len(b.head.group) != b.n {
		err = errBlock
	}
	return err
}

func (b *blockReader) rawIDs() (string, error) {
	if b.idText != "" {
		return b.idText, nil
	}
	err := b.tx.part("ids", b.seq, func(raw []byte) error { b.idText = string(raw); return nil })
	return b.idText, err
}

func (b *blockReader) ids() ([][4]string, error) {
	raw, err := b.rawIDs()
	if err == nil && b.idList == nil {
		b.idList, err = texts(raw, b.n)
	}
	return b.idList, err
}

// body returns the decompressed stages, errors, arguments and results.
func (b *blockReader) body() ([]byte, error) {
	if len(b.plain) > 0 {
		return b.plain, nil
	}
	err := b.tx.part("body", b.seq, func(raw []byte) (err error) {
		b.plain, err = s2.Decode(b.plain[:cap(b.plain)], raw)
		return err
	})
	return b.plain, err
}

func (b *blockReader) contents() ([][4]string, error) {
	raw, err := b.body()
	if err == nil && b.content == nil {
		b.content, err = texts(string(raw), b.n)
	}
	return b.content, err
}

// call returns the i-th record. If brief, it omits the fields in the body except
// the error.
func (b *blockReader) call(i int, brief bool) (store.Call, error) {
	c := b.head.call(b.seq, i)
	ids, err := b.ids()
	if err != nil {
		return c, err
	}
	c.ID, c.RequestID, c.Parent, c.TraceID = ids[i][0], ids[i][1], ids[i][2], ids[i][3]
	if brief && c.Status != store.StatusFailed { // only those have an error
		return c, nil
	}
	contents, err := b.contents()
	if err != nil {
		return c, err
	}
	c.Error = strings.Clone(contents[i][1])
	if brief {
		return c, nil
	}
	c.Arguments, c.Result = rawJSON(contents[i][2]), rawJSON(contents[i][3])
	c.Stages, err = store.ParseStages(contents[i][0])
	return c, err
}

// rawJSON returns a copy of a text as valid UTF-8, or nil if it is empty.
func rawJSON(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return store.ValidUTF8([]byte(s))
}

// matching returns the indexes of the records that match, in ascending order.
func (b *blockReader) matching(q store.CallQuery) (out []int, err error) {
	h := &b.head
	if !b.matchGroups(q) {
		return nil, nil
	}
	text := newNeedle(q.Text)
	since, until := micros(q.Since), micros(q.Until)
	for i, g := range h.group {
		seq := b.seq + int64(i)
		switch {
		case !b.groupOK[g],
			since != 0 && h.times[i] < since, until != 0 && h.times[i] >= until,
			q.AfterSeq > 0 && seq <= q.AfterSeq, q.BeforeSeq > 0 && seq >= q.BeforeSeq,
			q.Session != "" && h.names[h.sessions[i]] != q.Session:
			continue
		}
		if q.Parent != "" {
			ids, err := b.ids()
			if err != nil {
				return nil, err
			}
			if ids[i][2] != q.Parent {
				continue
			}
		}
		if q.Text != "" && !b.groupText[g] {
			has, err := b.hasText(i, text)
			if err != nil {
				return nil, err
			}
			if !has {
				continue
			}
		}
		out = append(out, i)
	}
	return out, nil
}

// hasText reports whether the ids or the contents of a record contain the text.
func (b *blockReader) hasText(i int, text needle) (bool, error) {
	ids, err := b.ids()
	if err != nil {
		return false, err
	}
	contents, err := b.contents()
	if err != nil {
		return false, err
	}
	for _, part := range append(contents[i][1:4:4], ids[i][:2]...) {
		if text.in([]byte(part)) {
			return true, nil
		}
	}
	return false, nil
}

// matchGroups sets groupOK to the groups that match and groupText to those of
// them whose names contain the text. It reports whether any group matches.
func (b *blockReader) matchGroups(q store.CallQuery) (anyone bool) {
	b.groupOK, b.groupText = b.groupOK[:0], b.groupText[:0]
	text := newNeedle(q.Text)
	same := func(want, have string) bool { return want == "" || want == have }
	for i := range b.head.groups {
		g := &b.head.groups[i]
		ok := same(q.Server, g.server) && same(q.Tool, g.tool) && same(q.Caller, g.caller) && same(q.Face, g.face) && q.Status.Matches(store.Status(g.status)) &&
			(q.Tools == nil || slices.Contains(q.Tools, tool.Name{Server: g.server, Tool: g.tool}))
		b.groupOK = append(b.groupOK, ok)
		named := false
		for _, name := range []string{g.server, g.tool, g.method, g.caller, g.callerName, g.kind} {
			named = named || ok && q.Text != "" && text.in([]byte(name))
		}
		b.groupText = append(b.groupText, named)
		anyone = anyone || ok
	}
	return anyone
}
