package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
)

// A record in a journal is the length of what follows and its checksum, four
// bytes each, and then the columns of a row: a letter for the type of each,
// and its value.
const recordHead = 8

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeRecord encodes a row. Its columns are int64, string or nil.
func encodeRecord(row []any) ([]byte, error) {
	size := recordHead
	for _, v := range row {
		size += binary.MaxVarintLen64 + 1
		if s, ok := v.(string); ok {
			size += len(s)
		}
	}
	b := make([]byte, recordHead, size)
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = binary.AppendVarint(append(b, 'i'), v)
		case string:
			b = binary.AppendUvarint(append(b, 's'), uint64(len(v)))
			b = append(b, v...)
		default:
			return nil, fmt.Errorf("a column of type %T cannot be kept", v)
		}
	}
	body := b[recordHead:]
	binary.LittleEndian.PutUint32(b, uint32(len(body)))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(body, castagnoli))
	return b, nil
}

// rows yields the rows of consecutive records, up to the first that is broken
// or not whole: the one that was being written when the process ended.
func rows(b []byte) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for len(b) >= recordHead {
			size, sum := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
			if uint64(size) > uint64(len(b)-recordHead) {
				return
			}
			body := b[recordHead : recordHead+int(size)]
			if size == 0 || crc32.Checksum(body, castagnoli) != sum {
				return
			}
			row, err := decodeRow(body)
			if err != nil || !yield(row) {
				return
			}
			b = b[recordHead+int(size):]
		}
	}
}

var errBroken = errors.New("the record is broken")

func decodeRow(b []byte) ([]any, error) {
	row := make([]any, 0, callFields)
	for len(b) > 0 {
		kind := b[0]
		b = b[1:]
		switch kind {
		case 'n':
			row = append(row, nil)
		case 'i':
			v, n := binary.Varint(b)
			if n <= 0 {
				return nil, errBroken
			}
			row, b = append(row, v), b[n:]
		case 's':
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return nil, errBroken
			}
			row, b = append(row, string(b[n:n+int(size)])), b[n+int(size):]
		default:
			return nil, errBroken
		}
	}
	return row, nil
}
